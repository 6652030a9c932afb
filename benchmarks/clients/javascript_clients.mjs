// Calls a running site with published JavaScript clients. Prints one line of JSON for each call: what was
// tried, and the result. run.py runs this in the folder in which the clients are installed; CLIENT_BASE_URL
// and CLIENT_KEY name the site.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const require = createRequire(`${folder}/index.js`);
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const version = (name) => JSON.parse(readFileSync(`${folder}/node_modules/${name}/package.json`)).version;

const baseURL = process.env.CLIENT_BASE_URL;
const apiKey = process.env.CLIENT_KEY;
const question = "Until when can I use up last year's leave?";
const cited = "employee-handbook.pdf";

const { default: OpenAI } = await load("openai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { embedMany, generateObject, generateText, streamText } = await load("ai");
const { z } = await load("zod");

const site = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const provider = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({
  name: "site",
  baseURL,
  apiKey,
  supportsStructuredOutputs: true,
});
const schema = z.object({ days: z.number(), text: z.string() });

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) {
    pieces.push(piece);
  }
  return pieces;
}

function vercel(name, model) {
  const common = { model, maxRetries: 0 };
  return [
    [name, "generateText with a system prompt", async () => {
      const told = await generateText({ ...common, system: "Be brief.", prompt: question, maxOutputTokens: 200 });
      return told.text.includes(cited);
    }],
    [name, "streamText", async () => {
      const told = streamText({ ...common, prompt: question, onError() {} });
      return (await collect(told.textStream)).join("").includes(cited);
    }],
    [name, "a second question with the messages of the first", async () => {
      const messages = [{ role: "user", content: question }];
      const first = await generateText({ ...common, messages });
      messages.push(...first.response.messages, { role: "user", content: "Why?" });
      return (await generateText({ ...common, messages })).text.length > 0;
    }],
    [name, "generateObject", async () => {
      const told = await generateObject({ ...common, prompt: question, schema });
      return told.object.text.includes(cited);
    }],
  ];
}

const uses = [
  ["openai", "chat completions, whole", async () => {
    const messages = [{ role: "developer", content: "Be brief." }, { role: "user", content: question }];
    const told = await site.chat.completions.create({ model: "any", messages });
    return told.choices[0].message.content.includes(cited);
  }],
  ["openai", "chat completions, streamed", async () => {
    const messages = [{ role: "user", content: question }];
    const chunks = await collect(await site.chat.completions.create({ model: "any", messages, stream: true }));
    return chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join("").includes(cited);
  }],
  ["openai", "responses, two questions", async () => {
    const first = await site.responses.create({ model: "any", input: question });
    const second = await site.responses.create({ model: "any", input: "Why?", previous_response_id: first.id });
    return first.output_text.includes(cited) && second.output_text.length > 0;
  }],
  ["openai", "responses, streamed", async () => {
    const stream = site.responses.stream({ model: "any", input: question });
    const kinds = (await collect(stream)).map((event) => event.type);
    return kinds.at(-1) === "response.completed" && (await stream.finalResponse()).output_text.includes(cited);
  }],
  ["openai", "a response in the background, taken up again", async () => {
    const stream = await site.responses.create({ model: "any", input: question, background: true, stream: true });
    const seen = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === "response.output_text.delta") {
        break;
      }
    }
    const named = seen[0].response.id;
    const query = { stream: true, starting_after: seen.at(-1).sequence_number };
    const rest = await collect(await site.responses.retrieve(named, query));
    const deltas = [...seen, ...rest].filter((event) => event.type === "response.output_text.delta");
    const whole = await site.responses.retrieve(named);
    return deltas.map((event) => event.delta).join("") === whole.output_text;
  }],
  ["openai", "embeddings", async () => {
    const told = await site.embeddings.create({ model: "any", input: "leave" });
    return told.data[0].embedding.length === 256;
  }],
  ...vercel("@ai-sdk/openai", provider("any")),
  ["@ai-sdk/openai", "embedMany", async () => {
    const told = await embedMany({ model: provider.textEmbeddingModel("any"), values: ["a", "b"], maxRetries: 0 });
    return told.embeddings.length === 2;
  }],
  ...vercel("@ai-sdk/openai-compatible", compatible("any")),
];

for (const [client, what, run] of uses) {
  let passed = false;
  let said = "";
  try {
    passed = Boolean(await run());
  } catch (error) {
    said = String(error).slice(0, 300);
  }
  console.log(JSON.stringify({ client: `${client} ${version(client)}`, what, passed, said }));
}
