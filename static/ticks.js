// Buttons that act on ticked rows are off until one is ticked. Without this module, the page that follows asks for a tick.

for (const form of document.querySelectorAll('form[data-ticks]')) {
  const update = () => {
    const anyTicked = Boolean(form.querySelector('[type=checkbox]:checked'));
    for (const button of form.querySelectorAll('button[name=act]')) button.disabled = !anyTicked;
  };
  form.addEventListener('change', update);
  update();
  addEventListener('pageshow', update); // a browser ticks again what was ticked when one goes back
}
