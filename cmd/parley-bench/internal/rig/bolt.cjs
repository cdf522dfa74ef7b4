// An app of Bolt that does what the echo agent does: it answers each message with its text, in its thread.
// With the address of a model, it streams that model's answer instead, with the client of OpenAI and the stream of Slack's own client.
// node bolt.cjs FOLDER-OF-BOLT ADDRESS API-URL TOKEN SECRET PATH [MODEL-URL]
const [folder, address, slackApiUrl, token, signingSecret, endpoint, model] = process.argv.slice(2);
const { App, LogLevel } = require(require.resolve("@slack/bolt", { paths: [folder] }));
const [host, port] = address.split(":");

const app = new App({
  token, signingSecret, endpoints: endpoint, clientOptions: { slackApiUrl }, logLevel: LogLevel.WARN,
  customRoutes: [{ path: "/readyz", method: ["GET"], handler: (_, response) => response.end() }],
});
const OpenAI = model && require(require.resolve("openai", { paths: [folder] }));
const openai = model && new OpenAI({ baseURL: `${model}/v1`, apiKey: "bench" });
app.message(async ({ message, say, client, context }) => {
  const thread = message.thread_ts ?? (message.channel.startsWith("D") ? undefined : message.ts);
  if (openai) {
    const answer = await openai.chat.completions.create({ model: "fake", stream: true, messages: [{ role: "user", content: message.text }] });
    const post = client.chatStream({ channel: message.channel, thread_ts: thread, recipient_team_id: context.teamId, recipient_user_id: message.user });
    for await (const chunk of answer) {
      const text = chunk.choices[0]?.delta?.content;
      if (text) await post.append({ markdown_text: text });
    }
    return post.stop();
  }
  return say({ text: message.text, thread_ts: thread });
});
process.on("SIGTERM", () => process.exit(0));
app.start({ host, port: Number(port) });
