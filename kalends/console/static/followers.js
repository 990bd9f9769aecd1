// The buttons that copy a digest.

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = button.parentElement.querySelector("textarea");
  field.addEventListener("focus", () => field.select());
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(field.value);
    button.textContent = button.dataset.copied;
  });
}
