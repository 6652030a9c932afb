// Disables buttons that act on selected rows until a row is selected. Without this module, the next page asks for a
// selection.

for (const form of document.querySelectorAll('form[data-ticks]')) {
  const update = () => {
    const anyTicked = Boolean(form.querySelector('[type=checkbox]:checked'));
    for (const button of form.querySelectorAll('button[name=act]')) button.disabled = !anyTicked;
  };
  form.addEventListener('change', update);
  update();
  addEventListener('pageshow', update); // after Back, the browser restores the selection
}
