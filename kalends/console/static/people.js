// The button that copies a one-time link.

const button = document.getElementById("copy");
const field = document.getElementById("link");

if (navigator.clipboard) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(field.value);
    button.textContent = button.dataset.copied;
  });
}
field.addEventListener("focus", () => field.select());
