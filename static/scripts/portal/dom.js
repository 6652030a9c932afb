// Finding nodes, HTML from the server, and words in the page's language.
// Every other module looks up nodes and texts here.
// Sends and receives nothing.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// The words of this module in the page's language; in English they are the keys.
const words = JSON.parse($('#words')?.textContent ?? '{}');
export const t = (text, n) => (words[text] ?? text).replace('{n}', () => n);

// HTML of our own templates, parsed once; its forms get the token that the page has.
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

// A click that the browser answers with a new tab, a new window or a menu.
export const opensElsewhere = event => event.ctrlKey || event.metaKey || event.shiftKey || event.button;
