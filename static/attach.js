// Attaches files to a question: uploads them one at a time, shows when they have been read, and lets the person
// detach them. attaching.js loads this module when a page shows attached documents, or a file is chosen, pasted or
// dropped. The response to an upload has the members described in upload.js, and `scope: {value, words}`.

const EVERY = 2000;
const extensions = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp', 'image/gif': 'gif' };

export function begin({ $, $$, t, parsed, say, toast, show }) {
  const form = $('#composer');
  const list = $('#attached');
  const [readable, unread] = $$('ul', list); // files that could not be read are listed separately, to stay visible
  const count = $('#attached-count');
  const scope = $('#scope');
  const { url, status, icons } = list.dataset;
  const waiting = []; // files that have not been sent yet
  let sending = null; // the promise of the upload loop; null if none is running
  let failed = false; // whether the upload of a file failed

  // Pasted images all have the same name, so add the time to it.
  function named(file, pasted) {
    if (!pasted || !/^image\.\w+$/.test(file.name)) return file.name;
    const now = new Date();
    const stamp = new Date(now - now.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
    return `${t('Pasted')} ${stamp.replace('T', ' ').replaceAll(':', '.')}.${extensions[file.type] ?? 'png'}`;
  }

  function chip(name) {
    const made =
      parsed(`<li class="chip"><svg class="icon" aria-hidden="true"><use href="${icons}#doc"/></svg>
      <span class="name"><bdi></bdi></span><span class="meta" data-readers></span><progress max="100" value="0"></progress><span class="meta" data-state></span>
      <button class="icon-button" type="button" data-detach><svg class="icon" aria-hidden="true"><use href="${icons}#close"/></svg></button></li>`);
    const item = $('li', made);
    $('bdi', item).textContent = name;
    $('button', item).title = t('Remove {n}', name);
    $('button', item).setAttribute('aria-label', t('Remove {n}', name));
    $('progress', item).setAttribute('aria-label', name);
    readable.append(item);
    showCount();
    return item;
  }

  function showState(item, { words, detail, unfinished, tone, done, total, readers }) {
    const bar = $('progress', item);
    if ($('[data-readers]', item)) $('[data-readers]', item).textContent = readers;
    const ready = !unfinished && tone !== 'danger';
    item.classList.toggle('danger', tone === 'danger');
    $('use', item).setAttribute('href', `${icons}#${tone === 'danger' ? 'error' : 'doc'}`);
    $('[data-state]', item).textContent = tone === 'danger' ? `${words}: ${detail}` : words;
    $('[data-state]', item).classList.toggle('hidden', ready);
    if (!unfinished) bar?.remove();
    else if (bar && total) {
      bar.max = total;
      bar.value = done;
    } else bar?.removeAttribute('value');
    item.toggleAttribute('data-unfinished', unfinished);
    if (!unfinished)
      say(`${$('bdi', item).textContent}: ${tone === 'danger' ? `${words}. ${detail}` : `${words}.`}`);
    if (tone !== 'danger') return;
    setApart(item);
    leaveOut(item); // a search would find nothing in this file
  }

  function setApart(item) {
    const held = item.contains(document.activeElement);
    unread.append(item);
    if (held) $('button', item).focus();
  }
  function choose(value, words) {
    let option = [...scope.options].find(each => each.value === value);
    if (!option) {
      option = new Option(words, value);
      option.dataset.attached = '';
      scope.append(option);
    }
    scope.value = value;
    showChosen();
  }
  // If the scope names this document, search the remaining documents of the scope, or everything if none remain.
  function leaveOut(item) {
    if (!scope.value.includes(item.dataset.document)) return showChosen();
    const others = $$('[data-document]:not(.danger)', list).filter(each => each !== item && !each.hidden);
    const ids = others.map(({ dataset }) => dataset.document).join(',');
    choose(ids ? `document:${ids}` : 'all', t('Only the attached documents'));
    for (const option of $$('[data-attached]', scope))
      if (!option.selected && option.value.includes(item.dataset.document)) option.remove();
  }
  // Show a chip for each document in the current scope and for each file that could not be read.
  function showChosen() {
    for (const item of $$('[data-document]', list))
      item.hidden = !(item.matches('.danger') || scope.value.includes(item.dataset.document));
    showCount();
  }
  // On a phone, the list is one line that may be cut off, so state how many files there are and how many failed to be
  // read.
  function showCount() {
    const [shown, failures] = [readable, unread].map(part => {
      const { length } = $$('li:not([hidden])', part);
      part.hidden = !length;
      return length;
    });
    list.hidden = !shown && !failures;
    count.hidden = !failures && shown < 3;
    count.textContent = [
      t('Documents: {n}', shown + failures),
      ...(failures ? [t('Could not be read: {n}', failures)] : []),
    ].join(' · ');
  }

  function send(file, name) {
    const item = chip(name);
    item.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    return new Promise(resolve => {
      const request = new XMLHttpRequest();
      const body = new FormData();
      body.append('csrfmiddlewaretoken', $('[name=csrfmiddlewaretoken]', form).value);
      body.append('scope', scope.value);
      body.append('file', file, name);
      request.open('POST', url);
      request.setRequestHeader('Accept', 'application/json');
      request.responseType = 'json';
      request.upload.addEventListener('progress', event => {
        if (!event.lengthComputable) return;
        $('progress', item).value = Math.floor((event.loaded * 100) / event.total);
      });
      const refuse = words => {
        failed = true;
        item.remove();
        showChosen();
        show(`${name}: ${words}`);
        resolve();
      };
      $('[data-state]', item).textContent = t('Uploading');
      $('button', item).addEventListener('click', () => request.abort(), { once: true });
      request.addEventListener('abort', () => {
        item.remove();
        showChosen();
        resolve();
      });
      request.addEventListener('error', () =>
        refuse(t('The connection was lost. Choose the file again to retry.')),
      );
      request.addEventListener('load', () => {
        const reply = request.response ?? {};
        const made = reply.documents?.[0];
        if (!made) {
          const problem = reply.refused?.[0]?.message ?? reply.problems?.join(' ');
          const large = request.status === 413 && t('The file is too large.');
          refuse(problem || large || t('The upload failed. Reload the page and try again.'));
          return;
        }
        for (const other of $$(`[data-document="${made.id}"]`, list)) other.remove();
        item.dataset.document = made.id;
        showState(item, made);
        if (item.matches('.danger')) {
          resolve();
          return;
        }
        // Other files may have been removed during the upload.
        const chosen = scope.value.startsWith('document:') ? scope.value.slice(9).split(',') : [];
        const value = `document:${[...new Set([...chosen, made.id])].join(',')}`;
        choose(value, value === reply.scope.value ? reply.scope.words : t('Only the attached documents'));
        resolve();
      });
      request.send(body);
    });
  }

  async function sendAll() {
    while (waiting.length) await send(...waiting.shift());
    sending = null;
  }

  async function look() {
    const items = $$('[data-unfinished]', list);
    try {
      if (items.length && !document.hidden) {
        const query = new URLSearchParams(items.map(item => ['id', item.dataset.document]));
        const reply = await fetch(`${status}?${query}`, {
          headers: { Accept: 'application/json' },
          redirect: 'manual',
        });
        const { documents = [], searchable } = reply.ok ? await reply.json() : {};
        if (searchable) $('[data-searchable]').textContent = searchable;
        for (const each of documents) {
          const item = items.find(({ dataset }) => dataset.document === each.id);
          if (item) showState(item, each);
        }
      }
    } catch {
      /* offline: try again in the next round */
    }
    setTimeout(look, EVERY);
  }

  list.addEventListener('click', event => {
    const item = event.target.closest('[data-detach]')?.closest('li');
    if (!item?.dataset.document) return;
    event.preventDefault();
    item.remove();
    leaveOut(item);
    toast(t('“{n}” stays under Documents.', $('bdi', item).textContent));
    ($('.chip:not([hidden]) button', list) ?? $('#attach')).focus();
  });
  scope.addEventListener('change', showChosen);
  for (const item of $$('.danger', readable)) setApart(item);
  showCount();
  setTimeout(look, EVERY);

  return {
    add(files, pasted = false) {
      show();
      failed = false;
      waiting.push(...[...files].map(file => [file, named(file, pasted)]));
      sending ??= sendAll();
    },
    // Resolves when no upload is running; the value says whether all files have arrived.
    async arrived() {
      await sending;
      return !failed;
    },
    get busy() {
      return Boolean(sending);
    },
    // The names of the files that could not be read.
    get unread() {
      return $$('bdi', unread).map(({ textContent }) => textContent);
    },
  };
}
