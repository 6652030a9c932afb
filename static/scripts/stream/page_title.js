// The titles of the tab and of the conversation. The tab's title has the prefix “Answering…” during an answer, and
// ● after one that ended unseen. Call rename(words) when the conversation gets a name. Sends and receives nothing.

export function pageTitle({ $, t, conversation }) {
  const answering = `${t('Answering…')} – `;
  const first = document.title.replace(answering, '');
  let name = first;
  return {
    rename(words, isRunning) {
      name = words + first.slice(first.lastIndexOf(' – '));
      document.title = isRunning ? answering + name : name;
      const row = $(`.row[data-conversation="${conversation}"]`);
      for (const bdi of [$('.bar h1 bdi'), row && $('bdi', row)]) if (bdi) bdi.textContent = words;
      if (row) row.title = words;
      if ($('#new-title')) $('#new-title').value = words;
    },
    showRunning() {
      document.title = answering + name;
    },
    showReady() {
      document.title = (document.hidden ? '● ' : '') + name;
    },
    // Remove the ●; returns whether there was one.
    clearReadyMark() {
      const isNew = document.title.startsWith('● ');
      if (isNew) document.title = document.title.slice(2);
      return isNew;
    },
  };
}
