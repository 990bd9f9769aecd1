// Embeds a view of the calendar in another page:
//   <script src="https://calendar.example/embed.js" data-view="/events/list/?categories=music" defer></script>
"use strict";
(() => {
  const script = document.currentScript;
  const origin = new URL(script.src).origin;
  const frame = document.createElement("iframe");
  frame.src = origin + "/embed" + (script.dataset.view || "/events/");
  frame.title = script.dataset.title || "Calendar";
  frame.loading = "lazy";
  frame.width = "100%";
  frame.height = script.dataset.height || "600";
  frame.style.border = "0";
  window.addEventListener("message", (event) => {
    if (event.source === frame.contentWindow && event.origin === origin && Number.isFinite(event.data?.kalends)) {
      frame.height = String(Math.min(Math.ceil(event.data.kalends), 2000));
    }
  });
  script.after(frame);
})();
