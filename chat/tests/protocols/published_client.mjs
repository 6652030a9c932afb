// Sends questions to a site with the published client:
// node published_client.mjs CLIENT ADDRESS KEY [HEADER [RETRIES]]  < {"calls": [{"messages", "options"?, "stream"?}]}
// Prints for each call {"answer"}, {"chunks"} or {"thrown"}. "$session" stands for the session of the previous call.
import { pathToFileURL } from "node:url";

const [, , path, address, key, header = "Authorization", retries = "0"] = process.argv;
const { AIChatProtocolClient } = await import(pathToFileURL(path).href);
const client = new AIChatProtocolClient(
  address,
  { key: header === "Authorization" ? `Bearer ${key}` : key },
  {
    credentials: { apiKeyHeaderName: header },
    retryOptions: { maxRetries: Number(retries), retryDelayInMs: 50 },
  },
);

// The client's build for Node can only send this type of file; for a Buffer it throws an error.
function withData(message) {
  const files = message.files?.map(({ contentType, data }) => ({
    contentType,
    data: new File([Buffer.from(data, "base64")], "picture", { type: contentType }),
  }));
  return files ? { ...message, files } : message;
}

async function call({ messages, options = {}, stream = false }, session) {
  const sent = options.sessionState === "$session" ? { ...options, sessionState: session } : options;
  const told = messages.map(withData);
  const chunks = [];
  try {
    if (!stream) return { answer: await client.getCompletion(told, sent) };
    for await (const chunk of await client.getStreamedCompletion(told, sent)) chunks.push(chunk);
    return { chunks };
  } catch (thrown) {
    return { chunks, thrown: thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : thrown };
  }
}

let input = "";
for await (const part of process.stdin) input += part;
const results = [];
let session;
for (const each of JSON.parse(input).calls) {
  const result = await call(each, session);
  session = result.answer?.sessionState ?? result.chunks?.[0]?.sessionState ?? session;
  results.push(result);
}
process.stdout.write(JSON.stringify(results));
