// The toolbar of an editor, cloned from a template of the page, which also has its texts.

import { COMMANDS, completeAddress, findLink, removeLink, setLink } from "./commands.js";

/**
 * A toolbar with one tab stop: arrow keys move between its buttons.
 *
 * The template has buttons with `data-command` and `data-keys`, and a panel `[data-link-panel]` for the address of a link.
 */
export class Toolbar {
  constructor(template, view) {
    this.view = view;
    this.dom = template.content.firstElementChild.cloneNode(true);
    this.bar = this.dom.querySelector("[role=toolbar]");
    this.buttons = [...this.bar.querySelectorAll("[data-command]")];
    this.panel = new LinkPanel(this.dom.querySelector("[data-link-panel]"), this);
    this.buttons.forEach((button, index) => (button.tabIndex = index ? -1 : 0));
    this.buttons.forEach(showKeys);
    // The editor keeps its selection and its focus while a button is clicked.
    this.bar.addEventListener("mousedown", (event) => event.preventDefault());
    this.bar.addEventListener("click", (event) => this.click(event));
    this.bar.addEventListener("keydown", (event) => this.move(event));
  }

  click(event) {
    const button = event.target.closest("[data-command]");
    if (!button || button.ariaDisabled === "true") return;
    this.setTabStop(button);
    const name = button.dataset.command;
    if (name === "link") {
      this.panel.toggle();
      return;
    }
    COMMANDS[name].run(this.view.state, this.view.dispatch, this.view);
    // A click with the keyboard stays in the toolbar; `detail` counts the clicks of a pointer.
    if (event.detail) this.view.focus();
  }

  move(event) {
    const index = this.buttons.indexOf(event.target.closest("[data-command]"));
    const count = this.buttons.length;
    const isRight = getComputedStyle(this.bar).direction === "rtl" ? -1 : 1;
    const targets = {
      ArrowRight: (index + isRight + count) % count,
      ArrowLeft: (index - isRight + count) % count,
      Home: 0,
      End: count - 1,
    };
    if (event.key === "Escape") this.view.focus();
    if (!(event.key in targets) || index < 0) return;
    event.preventDefault();
    this.setTabStop(this.buttons[targets[event.key]]);
    this.buttons[targets[event.key]].focus();
  }

  setTabStop(button) {
    for (const other of this.buttons) other.tabIndex = other === button ? 0 : -1;
  }

  focus() {
    this.buttons.find((button) => button.tabIndex === 0)?.focus();
    return true;
  }

  /** Show the state of the commands at the selection. */
  update(view) {
    for (const button of this.buttons) {
      const { isActive, isPossible } = COMMANDS[button.dataset.command] ?? {};
      if (isActive) button.ariaPressed = String(isActive(view.state));
      if (isPossible) button.ariaDisabled = String(!isPossible(view.state));
      if (button.dataset.command === "link") button.ariaPressed = String(Boolean(findLink(view.state).href));
    }
  }
}

/** Name the keys of a button, which follow the control key, in its tooltip and for screen readers. */
function showKeys(button) {
  const { keys } = button.dataset;
  button.title = button.ariaLabel + (keys ? ` (Ctrl+${keys})` : "");
  if (keys) button.setAttribute("aria-keyshortcuts", `Control+${keys}`);
}

/** The panel for the address of a link. */
class LinkPanel {
  constructor(dom, toolbar) {
    this.dom = dom;
    this.toolbar = toolbar;
    this.input = dom.querySelector("input");
    this.error = dom.querySelector("[data-link-error]");
    dom.querySelector("[data-link-apply]").addEventListener("click", () => this.apply());
    dom.querySelector("[data-link-remove]").addEventListener("click", () => this.remove());
    // The field does not belong to the form around the editor: Enter must not send it.
    this.input.addEventListener("input", (event) => event.stopPropagation());
    this.input.addEventListener("change", (event) => event.stopPropagation());
    dom.addEventListener("keydown", (event) => this.press(event));
  }

  toggle() {
    if (this.dom.hidden) this.open();
    else this.close();
    return true;
  }

  open() {
    this.range = findLink(this.toolbar.view.state);
    this.input.value = this.range.href;
    this.setInvalid(false);
    this.dom.hidden = false;
    this.input.focus();
    this.input.select();
    return true;
  }

  close() {
    this.dom.hidden = true;
    this.toolbar.view.focus();
  }

  press(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    } else if (event.key === "Enter" && event.target === this.input) {
      event.preventDefault();
      this.apply();
    }
  }

  apply() {
    if (!this.input.value.trim()) {
      this.remove();
      return;
    }
    const address = completeAddress(this.input.value);
    this.setInvalid(!address);
    if (!address) {
      this.input.focus();
      return;
    }
    setLink(this.toolbar.view, this.range, address);
    this.close();
  }

  remove() {
    removeLink(this.toolbar.view, this.range);
    this.close();
  }

  setInvalid(isInvalid) {
    this.input.ariaInvalid = String(isInvalid);
    this.error.hidden = !isInvalid;
  }
}
