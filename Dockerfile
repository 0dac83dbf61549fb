# A Fairway server. Build: docker build -t fairway . ; run: docker run -p 7420:7420 -v fairway:/data fairway
# Make a token first: docker run -v fairway:/data fairway token create ops --right submit,work,read,operate
FROM python:3.12-slim AS build
WORKDIR /src
# What it stands on first, in the versions that were tested, by their hashes: the server, and Cassandra for several nodes.
COPY requirements/build.txt requirements/image.txt ./
RUN pip install --no-cache-dir --require-hashes -r build.txt \
    && pip install --no-cache-dir --prefix=/install --require-hashes -r image.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --prefix=/install --no-deps --no-build-isolation .

FROM python:3.12-slim
COPY --from=build /install /usr/local
RUN useradd --system --home-dir /data fairway && install -d -o fairway /data
USER fairway
WORKDIR /data
VOLUME /data
ENV FAIRWAY_STORE=/data/work.db FAIRWAY_LISTEN=0.0.0.0 FAIRWAY_PORT=7420 FAIRWAY_PLAIN_HTTP=true
EXPOSE 7420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7420/readyz', timeout=2)"]
ENTRYPOINT ["fairway"]
CMD ["serve"]
