// Functions that are passed to the modules loaded on demand: stream.js, panel.js, palette.js and attach.js. These
// are separate files that cannot import from this bundle. Sends and receives nothing.
import { enliven } from '../answers/answer_tools.js';
import { say } from './announcer.js';
import { tell } from './banners.js';
import { mark, tellTabs } from './conversation_list.js';
import { $, $$, parsed, t } from './dom.js';
import { toast } from './overlays.js';
import { rove } from './roving.js';

export const shared = { $, $$, t, parsed, say, tell, toast, rove, enliven, mark, tellTabs };
