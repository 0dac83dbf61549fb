#!/bin/sh
# Install what some tests need beside Python: Java 17 and Maven (Cassandra), Chromium (the dashboard), curl (the pages),
# openssl (certificates).
# Debian and Ubuntu only; elsewhere it says what to install.
set -eu

missing=''
ls /usr/lib/jvm/*17*/bin/javac >/dev/null 2>&1 || missing="$missing openjdk-17-jdk-headless"
command -v mvn >/dev/null 2>&1 || missing="$missing maven"
for program in chromium curl openssl; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
if [ -z "$missing" ]; then
    echo "Java 17, Maven, Chromium, curl and openssl are here already."
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "Install by hand:$missing (or what they are called on this system)." >&2
    exit 1
fi
sudo=''
[ "$(id -u)" -eq 0 ] || sudo=sudo
echo "Installing$missing"
$sudo apt-get update -q
# shellcheck disable=SC2086 # a list of packages
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends $missing
