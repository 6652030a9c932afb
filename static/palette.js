// The command palette. Its HTML is fetched when it opens, and again for each query. The focus stays in the text
// box; the arrow keys select an option, and Enter activates it. Without an option, Enter searches the
// conversations. Besides the pages that the server finds, the palette offers actions of the current page: elements
// with `data-acts`, the bar's links and menu, and the last answer's sources. begin() returns open().

const PAUSE = 120; // ms after the last key press before the query is sent

export function begin({ $, $$, t, parsed }, address) {
  let dialog;
  let waiting;
  let asked = 0;

  async function fetched(query) {
    const answer = await fetch(`${address}?q=${encodeURIComponent(query)}`, { redirect: 'error' });
    if (!answer.ok) throw new Error(answer.status);
    return parsed(await answer.text());
  }

  // The actions that match the query: those of the last turn (or of the page if it has no turns) and of the bar.
  // `first` says whether the name or number of one begins with the query.
  function actions(query) {
    const scope = $$('.turn').at(-1) ?? $('main');
    const targets = new Set([...$$('[data-acts]', scope), ...$$('.bar :is(a.button, .menu .row)')]);
    const named = [
      ...[...targets].map(target => [target, target.ariaLabel ?? target.textContent.trim()]),
      ...$$('.source-row[data-source]', scope).map(target => {
        const [number, title] = ['.cite', 'strong'].map(part => $(part, target)?.textContent.trim() ?? '');
        return [target, `${t('Source')} ${number}: ${title}`, number];
      }),
    ];
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = named.filter(
      ([target, name]) => !target.hidden && words.every(word => name.toLowerCase().includes(word)),
    );
    const begins = found.filter(
      ([, name, number]) => number === query || name.toLowerCase().startsWith(query.toLowerCase()),
    );
    return { found: query && begins.length ? begins : found, first: begins.length > 0 };
  }
  // List actions before the server's results if an action begins with the query, otherwise after them.
  function addActions() {
    const list = $('#palette-list', dialog);
    const { found, first } = actions($('[role=combobox]', dialog).value.trim());
    if (!found.length) return;
    const group = parsed(
      '<div role="group" aria-labelledby="palette-here"><p class="meta"></p></div>',
    ).firstElementChild;
    const title = $('p', group);
    title.id = 'palette-here';
    title.setAttribute('role', 'presentation');
    title.textContent = t('On this page');
    found.forEach(([target, name], number) => {
      const option = parsed(
        '<a class="row" role="option" tabindex="-1" href="#"><span class="text"></span></a>',
      ).firstElementChild;
      option.id = `palette-here-${number}`;
      option.setAttribute('aria-selected', 'false');
      $('.text', option).textContent = name;
      const icon = $('svg, .cite', target) ?? $('summary svg', target.closest('.menu') ?? target);
      if (icon) option.prepend(icon.cloneNode(true));
      option.addEventListener('click', event => {
        event.preventDefault();
        dialog.close();
        target.click();
      });
      group.append(option);
    });
    if (first) list.prepend(group);
    else list.append(group);
    list.hidden = false;
    $('[role=status]', dialog).textContent = '';
  }

  const options = () => $$('[role=option]', dialog);
  function mark(option) {
    for (const each of options()) each.setAttribute('aria-selected', each === option);
    const box = $('[role=combobox]', dialog);
    // ARIA does not allow an empty list box.
    box.setAttribute('aria-expanded', String(!$('#palette-list', dialog).hidden));
    if (option) box.setAttribute('aria-activedescendant', option.id);
    else box.removeAttribute('aria-activedescendant');
    option?.scrollIntoView({ block: 'nearest' });
  }

  async function look() {
    asked += 1;
    const number = asked;
    const found = await fetched($('[role=combobox]', dialog).value).catch(() => null);
    if (!found || number !== asked) return;
    for (const part of ['#palette-list', '[role=status]']) $(part, dialog).replaceWith($(part, found));
    addActions();
    mark($('[role=combobox]', dialog).value ? options()[0] : null);
  }

  // Store the theme (light, dark or system) in the settings, then apply it.
  async function choose(theme) {
    const form = $('form[method=post]', dialog);
    const body = new FormData(form);
    body.set('theme', theme);
    const reply = await fetch(form.action, { method: 'POST', body, redirect: 'error' }).catch(() => null);
    const { dataset } = document.documentElement;
    if (!reply?.ok) location.assign(form.action);
    else if (theme === 'auto') delete dataset.theme;
    else dataset.theme = theme;
  }

  function onKey(event) {
    const all = options();
    const at = all.findIndex(option => option.ariaSelected === 'true');
    const next = { ArrowDown: (at + 1) % all.length, ArrowUp: at > 0 ? at - 1 : all.length - 1 }[event.key];
    if (next !== undefined && all.length) {
      event.preventDefault();
      mark(all[next]);
    } else if (event.key === 'Enter' && all[at] && !event.isComposing) {
      event.preventDefault();
      all[at].click();
    } else if (event.key === 'Escape' && !event.isComposing) {
      event.preventDefault(); // otherwise Escape would first empty the search field
      dialog.close();
    }
  }

  // Open the palette. When it has loaded, its text box gets the text that typed() returns.
  let opening = false;
  async function open(typed) {
    if (dialog?.open || opening) return;
    opening = true;
    const page = await fetched('').finally(() => {
      opening = false;
    });
    dialog?.remove();
    document.body.append(page);
    dialog = $('#palette');
    addActions();
    dialog.addEventListener('keydown', onKey);
    dialog.addEventListener('input', () => {
      clearTimeout(waiting);
      waiting = setTimeout(look, PAUSE);
    });
    dialog.addEventListener('click', event => {
      const { appearance } = event.target.closest('[role=option]')?.dataset ?? {};
      if (appearance) {
        event.preventDefault();
        choose(appearance);
      }
      const followed = event.target.closest('a');
      // Clear the search field: this page may stay open, or be shown again by Back.
      if (followed && $('#find')) $('#find').value = '';
      if (event.target === dialog || followed) dialog.close();
    });
    dialog.showModal();
    const box = $('[role=combobox]', dialog);
    box.focus();
    box.value = typed();
    if (box.value) look();
  }
  return { open };
}
