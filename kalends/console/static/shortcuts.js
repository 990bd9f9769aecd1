// Keyboard shortcuts of a page, with a dialog that lists them and switches them off.

const STORED = "kalends-shortcuts";

/** Return whether the focus is in a field that takes text or has keys of its own; the boxes of rows have not. */
function isTyping(target) {
  const isBox = target.matches("input[type=checkbox]");
  return !isBox && target.closest("input, select, textarea, [contenteditable], dialog") !== null;
}

function isOn() {
  return localStorage.getItem(STORED) !== "off";
}

/** Call `run` for keys outside of fields; it returns whether the key is a shortcut. "?" opens the help. */
export function connectShortcuts(run) {
  const help = document.querySelector("[data-help]");
  document.addEventListener("keydown", (event) => {
    if (!isOn() || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "?") help.showModal();
    else if (!run(event)) return;
    event.preventDefault();
  });
  // The help dialog works while shortcuts are off, so that they can be switched on again.
  const button = document.querySelector("[data-help-button]");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
  const box = document.querySelector("[data-shortcuts]");
  box.checked = isOn();
  box.addEventListener("change", () => localStorage.setItem(STORED, box.checked ? "on" : "off"));
}
