// Ask a site from JavaScript, and show the answer while it is written: SITE and KEY are its address and an API key,
// in the environment. Needs no package; runs in Node 18, Deno, Bun, and as a module of a page.
//
//     node ask.mjs "How many days a year may I work from abroad?" "And from outside Europe?"

// Returns {text, statements, conversation}; `onText` gets each piece of the answer as it arrives.
export async function ask(site, key, question, { conversation = null, onText = () => {} } = {}) {
  const response = await fetch(`${site}/chat/stream`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: question }], session_state: conversation }),
  });
  if (!response.ok) {
    const problem = await response.json();
    throw new Error(problem.error ?? problem.detail);
  }
  const answer = { text: '', statements: [], conversation };
  for await (const { delta, context, session_state, error } of lines(response.body)) {
    if (error) throw new Error(error);
    if (delta?.content) {
      answer.text += delta.content;
      onText(delta.content);
    }
    answer.statements = context?.verification ?? answer.statements;
    answer.conversation = session_state ?? answer.conversation;
  }
  return answer;
}

// The JSON objects of a body, one in each line.
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
  if (rest) yield JSON.parse(rest);
}

if (globalThis.process?.argv[1]?.endsWith('ask.mjs')) {
  const { SITE, KEY } = process.env;
  let conversation = null;
  try {
    for (const question of process.argv.slice(2)) {
      const onText = text => process.stdout.write(text);
      const answer = await ask(SITE, KEY, question, { conversation, onText });
      conversation = answer.conversation; // the next question goes on from here
      const cited = answer.statements.filter(statement => statement.citations.length);
      const proved = cited.filter(statement => statement.verdict !== 'not_found').length;
      console.log(`\n${proved} of ${cited.length} statements that cite were found in their sources.\n`);
    }
  } catch (refusal) {
    console.error(refusal.message);
    process.exitCode = 1;
  }
}
