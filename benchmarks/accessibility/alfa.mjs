// Every page and state of the portal and the admin by the rules of @siteimprove/alfa for WCAG 2.2 at the levels A and AA.
// Run by benchmarks.accessibility.run: SITE, and the passwords of the demo's accounts as JSON.
import { Audit, Outcome } from '@siteimprove/alfa-act';
import { Playwright } from '@siteimprove/alfa-playwright';
import rules from '@siteimprove/alfa-rules';
import { Conformance } from '@siteimprove/alfa-wcag';
import { chromium } from 'playwright-core';

const [site, given] = process.argv.slice(2);
const passwords = JSON.parse(given);
const chosen = [...rules].filter(({ requirements }) =>
  [...requirements].some(each => each.level && Conformance.isAA()(each)),
);
const looks = [
  { width: 1280, colorScheme: 'light', dir: 'ltr' },
  { width: 1280, colorScheme: 'dark', dir: 'rtl' },
  { width: 800, colorScheme: 'light', dir: 'rtl' },
  { width: 390, colorScheme: 'dark', dir: 'ltr' },
  { width: 390, colorScheme: 'light', dir: 'rtl' },
];
const PAGES = ['/', '/documents/', '/documents/?show=failed', '/documents/add/', '/search/', '/search/?q=leave'];
PAGES.push('/search-in', '/projects/', '/projects/new', '/shares/', '/settings/', '/settings/keys/');
PAGES.push('/settings/sessions/', '/settings/data/', '/help/', '/privacy/', '/nothing-here/');
const ADMIN = `
  /admin/ /admin/status/ /admin/password_change/
  /admin/accounts/apikey/ /admin/accounts/apikey/add/ /admin/accounts/auditentry/ /admin/accounts/externalidentity/
  /admin/accounts/groupmapping/ /admin/accounts/groupmapping/add/ /admin/accounts/user/ /admin/accounts/user/add/
  /admin/accounts/webhookendpoint/ /admin/auth/group/ /admin/auth/group/add/
  /admin/chat/agent/ /admin/chat/agent/add/ /admin/chat/messageallowance/ /admin/chat/messageallowance/add/
  /admin/chat/proofquestion/ /admin/chat/proofquestion/add/ /admin/chat/proofquestion/collect/
  /admin/chat/proofquestion/file/ /admin/chat/proofrun/ /admin/chat/run/ /admin/chat/sitetexts/
  /admin/chat/sitetexts/add/ /admin/chat/sitetexts/try/ /admin/chat/startingquestion/ /admin/chat/startingquestion/add/
  /admin/chat/verifiedanswer/ /admin/chat/verifiedanswer/add/ /admin/chat/verifiedanswer/unanswered/
  /admin/ingestion/bulkchange/ /admin/ingestion/document/ /admin/ingestion/document/access/ /admin/ingestion/document/add/
  /admin/ingestion/document/add-several/ /admin/ingestion/houseword/ /admin/ingestion/houseword/add/
  /admin/ingestion/houseword/file/ /admin/ingestion/houseword/shipped/ /admin/procrastinate/procrastinatejob/
`
  .trim()
  .split(/\s+/);

const failed = new Map();
const total = { pages: 0, passed: 0, failed: 0, unknown: 0 };

async function judge(page, name, { width, colorScheme, dir }) {
  await page.evaluate(value => {
    document.documentElement.dir = value;
  }, dir);
  await page.waitForTimeout(400); // colours change in 120 ms
  const tree = await Playwright.toPage(await page.evaluateHandle(() => window.document));
  total.pages += 1;
  for (const outcome of await Audit.of(tree, chosen).evaluate()) {
    if (Outcome.isPassed(outcome)) total.passed += 1;
    else if (Outcome.isCantTell(outcome)) total.unknown += 1;
    else if (Outcome.isFailed(outcome)) {
      total.failed += 1;
      const key = `${outcome.rule.uri.split('/').pop()} ${name} (${width} px, ${colorScheme}, ${dir})`;
      failed.set(key, [...(failed.get(key) ?? []), String(outcome.target).replace(/\s+/g, ' ').slice(0, 200)]);
    }
  }
}

async function signIn(page, name) {
  await page.goto('/accounts/sign-in/');
  await page.fill('[name=username]', name);
  await page.fill('[name=password]', passwords[name]);
  await page.press('[name=password]', 'Enter');
  await page.waitForURL(address => !address.pathname.startsWith('/accounts/'));
}

async function ask(page, question) {
  await page.goto('/');
  await page.fill('#question', question);
  await page.click('#send');
  await page.waitForSelector('.answer[data-state=complete] .source-row');
}

async function states(page, look) {
  const see = name => judge(page, name, look);
  await ask(page, 'When must carried days of leave be used?');
  const address = new URL(page.url()).pathname;
  await see('conversation');
  await page.locator('.prose a.cite').first().click();
  await page.waitForSelector('#source:not([hidden]) .passage');
  await see('source: quote');
  for (const view of ['page', 'thoughts', 'support']) {
    await page.goto(`${address}?source=1.1&view=${view}`);
    await see(`source: ${view}`);
  }
  await page.goto(address);
  await page.click('.on button[data-rating=bad]');
  await page.waitForSelector('.feedback[open]');
  await see('feedback');
  await page.click('[data-edit]');
  await page.waitForSelector('form.edit');
  await see('edit a question');
  await page.goto(address);
  await page.click('#menu summary');
  await see('menu');
  await page.click('[data-dialog=delete-dialog]');
  await see('dialog');
  await page.goto(address);
  await page.setInputFiles('.attach input', [
    { name: 'crane.md', mimeType: 'text/markdown', buffer: Buffer.from('The crane lifts four tonnes.') },
    { name: 'bad.pdf', mimeType: 'application/pdf', buffer: Buffer.from('no PDF') },
  ]);
  await page.waitForSelector('#attached .danger');
  await see('attached files');
  await page.keyboard.press('Control+k');
  await page.waitForSelector('dialog[open] input');
  await see('palette');
  await page.goto(`${address}share`);
  await see('share');
  for (const name of ['manage', 'rename', 'delete', 'move']) {
    await page.goto(`${address}${name}`);
    await see(name);
  }
  await page.goto('/documents/');
  await page.locator('.files a, table a').first().click();
  await see('document');
  await page.goto(`${page.url()}?q=the`);
  await see('document, words found');
  await page.goto('/documents/add/');
  await page.locator('[name=who][value=some]').click();
  await page.locator('#id_people').pressSequentially('hr');
  await page.waitForSelector('[role=option]');
  await see('people suggested');
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
for (const look of looks) {
  const { width, colorScheme } = look;
  const options = { viewport: { width, height: 844 }, colorScheme, baseURL: site };
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto('/accounts/sign-in/');
  await judge(page, 'sign-in', look);
  await signIn(page, 'employee');
  for (const path of PAGES) {
    await page.goto(path);
    await judge(page, path, look);
  }
  await states(page, look);
  await context.close();
  const office = await browser.newContext(options);
  const desk = await office.newPage();
  await signIn(desk, 'admin');
  for (const path of ADMIN) {
    await desk.goto(path);
    await judge(desk, path, { ...look, dir: 'ltr' }); // its languages are written from left to right
  }
  await office.close();
}
// A page that is known to be bad: rules that find nothing in it would find nothing anywhere.
const bad = await browser.newPage();
await bad.setContent('<html><body><img src="x"><input><p style="color:#999;background:#aaa">Grey</p></body></html>');
const tree = await Playwright.toPage(await bad.evaluateHandle(() => window.document));
const control = [...(await Audit.of(tree, chosen).evaluate())].filter(Outcome.isFailed).length;
await browser.close();

for (const [key, targets] of failed) console.log(`- ${key}: ${targets.length}, such as ${targets[0]}`);
console.log(
  `${chosen.length} rules, ${total.pages} pages and states: ${total.passed} passed, ${total.failed} failed, ` +
    `${total.unknown} undecided. The bad page fails ${control}.`,
);
process.exit(total.failed || !control ? 1 : 0);
