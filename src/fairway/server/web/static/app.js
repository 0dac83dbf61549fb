// The dashboard's own script: charts, dialogs, words about what was done, and the theme.
"use strict";

// -- theme

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("fairway-theme", root.dataset.theme); } catch { /* it lasts as long as the page */ }
  drawCharts();
});
prefersDark.addEventListener("change", () => drawCharts());

// -- words about what was done

function toast(text, bad) {
  const made = document.createElement("div");
  made.className = bad ? "toast bad" : "toast";
  made.textContent = text;
  document.getElementById("toasts").append(made);
  setTimeout(() => made.remove(), bad ? 8000 : 4000);
}

// Captured, so that dialogs are closed before parts of the page are loaded anew.
document.addEventListener("fairway-done", (event) => {
  const weigh = document.getElementById("weigh");
  if (weigh && weigh.open) weigh.close();
  toast(event.detail.text, false);
}, true);
document.addEventListener("htmx:responseError", (event) => {
  const answer = event.detail.xhr;
  if (answer.status !== 401) toast(answer.responseText || `The server answered ${answer.status}.`, true);
});
document.addEventListener("htmx:sendError", () => toast("The server cannot be reached.", true));

// -- dialogs

let asked = null; // what a dialog asks about, until its request is on its way

document.addEventListener("htmx:confirm", (event) => {
  if (!event.detail.question) return;
  event.preventDefault();
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-text").textContent = event.detail.question;
  dialog.returnValue = "";
  asked = event.detail.elt;
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes" && asked.isConnected) event.detail.issueRequest(true);
    else if (dialog.returnValue === "yes") toast("The page has changed meanwhile, and nothing was done. Look again.", true);
    asked = null;
  }, { once: true });
  dialog.showModal();
});

document.addEventListener("click", (event) => {
  const pressed = event.target.closest("[data-weigh], [data-close]");
  if (!pressed) return;
  if (pressed.hasAttribute("data-close")) {
    pressed.closest("dialog").close();
    return;
  }
  const dialog = document.getElementById("weigh");
  document.getElementById("weigh-name").textContent = pressed.dataset.weigh || "(unnamed)";
  dialog.querySelector("[name=tenant]").value = pressed.dataset.weigh;
  const field = dialog.querySelector("[name=weight]");
  field.value = pressed.dataset.weight;
  dialog.showModal();
  field.select();
});

// -- live parts: not replaced under a finger, behind a dialog, or while a button of theirs waits for its answer

function busy(part) {
  return asked || document.querySelector("dialog[open]") || part.matches(":active") || part.querySelector(".htmx-request");
}

document.addEventListener("htmx:sseBeforeMessage", (event) => {
  if (event.target.hasAttribute("data-live") && busy(event.target)) event.preventDefault();
});
// What is told to a part that is busy is asked for again a moment later.
const AGAIN_MS = 500;
const again = new WeakSet();

function tooEarly(event) {
  const part = event.detail.elt;
  const cause = event.detail.requestConfig.triggeringEvent;
  if (!part.hasAttribute("data-live") || (cause && cause.type === "fairway-done") || !busy(part)) return false;
  if (cause && cause.type === "sse:changed" && !again.has(part)) {
    again.add(part);
    setTimeout(() => {
      again.delete(part);
      if (part.isConnected) htmx.trigger(part, "sse:changed");
    }, AGAIN_MS);
  }
  return true;
}

document.addEventListener("htmx:beforeRequest", (event) => { if (tooEarly(event)) event.preventDefault(); });
document.addEventListener("htmx:beforeSwap", (event) => { if (tooEarly(event)) event.detail.shouldSwap = false; });

const live = document.getElementById("live");
let source = null;

function connected(yes) {
  if (!live) return;
  live.classList.toggle("on", yes);
  live.classList.toggle("off", !yes);
  live.lastElementChild.textContent = yes ? "Live" : "No connection";
  live.title = yes ? "Live" : "The server does not answer; what is shown may be old";
}

document.addEventListener("htmx:sseOpen", (event) => {
  connected(true);
  source = event.detail.source;
  source.addEventListener("gone", () => location.reload(), { once: true });
});
document.addEventListener("htmx:sseError", () => connected(false));

// Browsers allow six connections to a server: tabs that nobody looks at must not hold them all.
const HIDDEN_MS = 60000;
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => { if (source) source.close(); }, HIDDEN_MS);
  else if (source && source.readyState === EventSource.CLOSED) location.reload();
});

// -- charts

const SECONDS = 300;
let points = [];
let charts = [];

document.addEventListener("htmx:sseMessage", (event) => {
  if (event.target.id !== "charts") return;
  const told = JSON.parse(event.detail.data);
  points = event.detail.type === "history" ? told : points.concat([told]).slice(-SECONDS);
  if (charts.length) charts.forEach(([chart, pick]) => chart.setData(pick()));
  else drawCharts();
});

function colour(name) {
  return getComputedStyle(root).getPropertyValue(name).trim();
}

function column(at) {
  return points.map((point) => point[at]);
}

function number(value) {
  if (value == null) return "";
  return value >= 1e6 ? `${+(value / 1e6).toPrecision(3)}M` : value >= 1e4 ? `${+(value / 1e3).toPrecision(3)}k` : `${+value.toFixed(1)}`;
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
}

function line(label, stroke, fill, show) {
  return { label, stroke, fill, width: 1.75, points: { show: false }, spanGaps: false, value: (_, value) => show(value) };
}

function chartOf(place, series, range, show, more) {
  const muted = colour("--muted");
  const grid = { stroke: colour("--grid"), width: 1 };
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: muted, grid, ticks: { show: false }, font };
  return new uPlot({
    width: place.clientWidth, height: 190, padding: [8, 6, 0, 0], legend: { show: false },
    cursor: { y: false, points: { size: 7 } },
    scales: {
      x: { range: (_, low, high) => { const end = high || Date.now() / 1000; return [end - SECONDS, end]; } },
      y: { range },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 48, size: 28, incrs: [60, 120, 300], values: (_, all) => all.map(clock) },
      { ...axis, size: 44, values: (_, all) => all.map(show), ...more },
    ],
    series: [{}, ...series],
    hooks: { setCursor: [tip] },
  }, [[], ...series.map(() => [])], place);
}

// What the lines are worth under the cursor.
function tip(chart) {
  const at = chart.cursor.idx;
  const place = chart.root.parentElement;
  let told = place.querySelector(".tip");
  if (!told) {
    told = document.createElement("div");
    told.className = "tip";
    place.append(told);
  }
  const shown = at != null && chart.data[0][at] != null;
  told.hidden = !shown;
  if (!shown) return;
  const when = new Date(chart.data[0][at] * 1000).toLocaleTimeString([], { hour12: false });
  const values = chart.series.slice(1).map((one, i) => `${one.label} ${one.value(chart, chart.data[i + 1][at]) || "–"}`);
  told.textContent = [when, ...values].join("  ·  ");
}

function drawCharts() {
  const throughput = document.getElementById("chart-throughput");
  if (!throughput || typeof uPlot === "undefined") return;
  charts.forEach(([chart]) => chart.destroy());
  const fairness = document.getElementById("chart-fairness");
  const a = colour("--accent");
  const b = colour("--second");
  const upward = (_, low, high) => [0, Math.max(5, (high || 0) * 1.1)];
  charts = [
    [chartOf(throughput, [line("handed out", a, colour("--wash"), number), { ...line("completed", b, undefined, number), dash: [5, 3] }], upward, number),
      () => [column(0), column(1), column(2)]],
    [chartOf(fairness, [line("index", a, colour("--wash"), (value) => (value == null ? "" : value.toFixed(3)))], () => [0, 1.05], (value) => `${value}`, { splits: () => [0, 0.25, 0.5, 0.75, 1] }),
      () => [column(0), column(3)]],
  ];
  charts.forEach(([chart, pick]) => chart.setData(pick()));
}

new ResizeObserver(() => charts.forEach(([chart]) => {
  const width = chart.root.parentElement.clientWidth;
  if (width && width !== chart.width) chart.setSize({ width, height: 190 });
})).observe(document.body);
drawCharts();
