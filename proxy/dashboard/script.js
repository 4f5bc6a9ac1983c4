// Asks for the page again every second, and puts its live parts in the place of those here. What can hold the focus stays.
"use strict";
const gone = document.getElementById("gone");
const pause = document.getElementById("pause");
let lastSeen = new Date();

pause.addEventListener("click", () => {
  const paused = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", String(paused));
});

async function refresh() {
  try {
    const answer = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(2000) });
    if (!answer.ok) throw new Error("status " + answer.status);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = next.getElementById(part.id);
      if (now && now.innerHTML !== part.innerHTML) part.innerHTML = now.innerHTML;
    }
    lastSeen = new Date();
    gone.hidden = true;
    gone.textContent = "";
    document.body.classList.remove("gone");
  } catch {
    if (gone.hidden) {
      gone.hidden = false;
      gone.textContent = "The proxy does not answer. What is below is from " + lastSeen.toISOString().slice(11, 19) + " UTC.";
      document.body.classList.add("gone");
    }
  }
}

async function loop() {
  if (!document.hidden && pause.getAttribute("aria-pressed") !== "true") await refresh();
  setTimeout(loop, 1000);
}
setTimeout(loop, 1000);
