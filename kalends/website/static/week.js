// The line at the current time in the column of today.
"use strict";
(() => {
  const column = document.querySelector(".blocks[data-slots]");
  // The Unix time at which each row of the grid begins. A row that is no time of this day begins with the next one.
  const slots = column.dataset.slots.split(",").map(Number);
  const line = document.createElement("li");
  line.className = "now";
  line.ariaHidden = "true";
  column.append(line);
  const move = () => {
    const now = Date.now() / 1000;
    const row = slots.findLastIndex((begin) => begin <= now);
    const part = (now - slots[row]) / 3600;
    line.hidden = row < 0 || part >= 1;
    line.style.top = `calc(var(--hour) * ${row + part})`;
  };
  move();
  setInterval(move, 60_000);
})();
