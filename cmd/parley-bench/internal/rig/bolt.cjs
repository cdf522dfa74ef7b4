// An app of Bolt that does what the echo agent does: it answers each message with its text, in its thread.
// node bolt.cjs FOLDER-OF-BOLT ADDRESS API-URL TOKEN SECRET PATH
const [folder, address, slackApiUrl, token, signingSecret, endpoint] = process.argv.slice(2);
const { App, LogLevel } = require(require.resolve("@slack/bolt", { paths: [folder] }));
const [host, port] = address.split(":");

const app = new App({
  token, signingSecret, endpoints: endpoint, clientOptions: { slackApiUrl }, logLevel: LogLevel.WARN,
  customRoutes: [{ path: "/readyz", method: ["GET"], handler: (_, response) => response.end() }],
});
app.message(({ message, say }) => {
  const thread = message.thread_ts ?? (message.channel.startsWith("D") ? undefined : message.ts);
  return say({ text: message.text, thread_ts: thread });
});
process.on("SIGTERM", () => process.exit(0));
app.start({ host, port: Number(port) });
