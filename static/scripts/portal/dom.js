// Helpers that all modules use: find elements, parse HTML from the server, and translate texts. Sends and receives
// nothing.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// Translations of the scripts' texts by their English form; empty in English.
const words = JSON.parse($('#words')?.textContent ?? '{}');
export const t = (text, n) => (words[text] ?? text).replace('{n}', () => n);

// Parses HTML from the site's own templates; its forms get the CSRF token of this page.
const policy = window.trustedTypes?.createPolicy('portal', { createHTML: html => html });
export function parsed(html) {
  const template = document.createElement('template');
  template.innerHTML = policy ? policy.createHTML(html) : html;
  const token = $('[name=csrfmiddlewaretoken]');
  for (const post of $$('form[method=post]', template.content)) {
    if (token && !$('[name=csrfmiddlewaretoken]', post)) post.append(token.cloneNode());
  }
  return template.content;
}

// Whether the browser opens a new tab, a new window or a menu for this click.
export const opensElsewhere = event => event.ctrlKey || event.metaKey || event.shiftKey || event.button;
