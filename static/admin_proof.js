// The admin: shows how far a run of the proof is.
// Fetches the page it is on every 2 seconds and copies the part with the progress.
// Loads the page anew once the run has ended.

const EVERY = 2000;

async function refreshRun() {
  const run = document.getElementById('proof-run');
  if (!run?.hasAttribute('data-unfinished')) return;
  try {
    const reply = document.hidden ? null : await fetch(location.href);
    if (reply?.redirected) {
      location.reload();
      return;
    } // signed out meanwhile
    if (reply?.ok) {
      const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
      const fresh = page.getElementById('proof-run');
      if (!fresh?.hasAttribute('data-unfinished')) {
        location.reload();
        return;
      }
      const status = run.querySelector('[role="status"]');
      const now = fresh.querySelector('[role="status"]').textContent;
      if (status.textContent !== now) status.textContent = now;
      run.querySelector('progress').value = fresh.querySelector('progress').value;
    }
  } catch {
    /* offline: the next round asks again */
  }
  setTimeout(refreshRun, EVERY);
}
setTimeout(refreshRun, EVERY);
