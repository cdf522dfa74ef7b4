// An agent behind a webhook: WEBHOOK_SECRET=… PORT=8000 node agent.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const server = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  const stamp = request.headers["x-parley-timestamp"], given = Buffer.from(request.headers["x-parley-signature"] ?? "");
  const signature = Buffer.from("v1=" + createHmac("sha256", process.env.WEBHOOK_SECRET).update(`v1:${stamp}:`).update(body).digest("hex"));
  const authentic = given.length === signature.length && timingSafeEqual(given, signature);
  if (!authentic || Math.abs(Date.now() / 1000 - stamp) > 300) return response.writeHead(401).end();
  const said = JSON.parse(body).message.content;
  response.setHeader("Content-Type", "application/json").end(JSON.stringify({ content: "You said: " + said }));
});
server.listen(process.env.PORT ?? 8000, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
