// Sets the theme before anything is drawn, so that a page does not flash.
(() => {
  let chosen = "";
  try { chosen = localStorage.getItem("fairway-theme") || ""; } catch { /* storage may be forbidden */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
