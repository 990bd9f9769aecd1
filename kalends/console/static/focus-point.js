// The focus point of an image: by click, by arrow keys, or by the two number fields; with a preview of the crops.

const STEP = 0.01;
const LARGE_STEP = 0.1;
const editor = document.querySelector("[data-focus-editor]");
const image = editor.querySelector(".focus-image img");
const marker = editor.querySelector(".focus-marker");
const place = editor.querySelector("#focus-place");
const fields = [editor.elements.focus_x, editor.elements.focus_y];
const crops = document.querySelectorAll(".crop");
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const limit = (value) => Math.min(Math.max(value, 0), 1);
const read = () => fields.map((field) => limit(field.value === "" ? 0.5 : Number(field.value)));

/** Show the marker and the crops at the point of the fields. */
function show() {
  const [x, y] = read().map((value) => Math.round(value * 100));
  for (const element of [marker, ...crops]) {
    element.style.setProperty("--x", `${x}%`);
    element.style.setProperty("--y", `${y}%`);
  }
  place.textContent = place.dataset.text.replace("{x}", x).replace("{y}", y);
}

function set(point) {
  point.forEach((value, n) => { fields[n].value = String(Number(limit(value).toFixed(2))); });
  show();
}

if (image) {
  editor.classList.add("has-script");
  marker.hidden = false;
  editor.querySelector("[data-script]").hidden = false;
  image.addEventListener("click", ({ clientX, clientY }) => {
    const area = image.getBoundingClientRect();
    set([(clientX - area.left) / area.width, (clientY - area.top) / area.height]);
    marker.focus();
  });
  marker.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const step = event.shiftKey ? LARGE_STEP : STEP;
    set(read().map((value, n) => value + move[n] * step));
  });
  for (const field of fields) field.addEventListener("input", show);
  show();
}
