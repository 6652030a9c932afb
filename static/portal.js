// The scripts of the portal; every page and form also works without them. The order matters, because listeners are
// called in the order in which they were added. In production all modules are served as one file
// (chatsite/joined_files.py).
// Loads stream.js on the page of a conversation, and panel.js, palette.js and attach.js on demand.
import './scripts/portal/overlays.js';
import './scripts/portal/conversation_list.js';
import './scripts/answers/terms.js';
import './scripts/answers/reading_aloud.js';
import './scripts/answers/copying.js';
import './scripts/answers/answer_tools.js';
import './scripts/answers/earlier_turns.js';
import './scripts/answers/editing.js';
import './scripts/answers/feedback.js';
import './scripts/portal/sources.js';
import './scripts/portal/palette_opening.js';
import './scripts/portal/keyboard.js';
import './scripts/composer/composer.js';
