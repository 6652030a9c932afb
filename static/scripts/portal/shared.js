// What the modules are given that are loaded when they are needed: stream.js, panel.js, palette.js and attach.js.
// They are files of their own and import nothing of this bundle.
// Sends and receives nothing.
import { enliven } from '../answers/answer_tools.js';
import { say } from './announcer.js';
import { tell } from './banners.js';
import { mark, tellTabs } from './conversation_list.js';
import { $, $$, parsed, t } from './dom.js';
import { toast } from './overlays.js';
import { rove } from './roving.js';

export const shared = { $, $$, t, parsed, say, tell, toast, rove, enliven, mark, tellTabs };
