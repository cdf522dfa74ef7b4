// What the tests of the client do with it, in a browser and in Node. Each scenario tells what it sees.

function same(what, got, want) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)];
  if (a !== b) throw new Error(`${what}: got ${a}, want ${b}`);
}

function vectors(sdk) {
  const { parseMessage, toAgentMessage, toCompactMessage, createCompactMessage, AgentMessageType, isStale, computeStaleLag } = sdk;
  same('types', [AgentMessageType.SYSTEM, AgentMessageType.ANSWER, AgentMessageType.BATCH_PROGRESS, AgentMessageType[12]], [0, 7, 13, 'STREAMING_CHUNK']);
  same('a text', parseMessage('{"t":3}'), { t: 3 });
  same('compact', parseMessage({ t: 3, type: 7, extra: 1 }), { t: 3, type: 7, extra: 1 });
  same('readable', parseMessage({ type: 'answer', message: 'x', workstream_id: 'main', timestamp: 5 }), { t: 7, m: 'x', ts: 5 });
  same('an unknown type', parseMessage({ type: 'restarting', message: 'x' }), { t: 3, m: 'x' });
  same('empty members', parseMessage({ type: 10, timestamp: 0, message: '', workflow_run_id: 'r' }), { t: 10 });
  for (const bad of [[], 5, null, {}, { foo: 1 }, 'not json', '7']) {
    let thrown = false;
    try { parseMessage(bad); } catch { thrown = true; }
    same(`thrown for ${JSON.stringify(bad)}`, thrown, true);
  }
  const now = Date.now(), empty = toAgentMessage({ t: 7 });
  same('a time', empty.timestamp >= now, true);
  same('defaults', { ...empty, timestamp: 0 }, { timestamp: 0, workflow_run_id: '', type: 7, message: '', workstream_id: 'main' });
  same('null details', toAgentMessage({ t: 7, d: null, ts: 1 }, 'r').details, undefined);
  same('a zero', toAgentMessage({ t: 7, d: 0, ts: 1 }, 'r').details, 0);
  same('a chunk', toAgentMessage({ t: 12, m: 'c', ts: 1 }, 'r').details, { streaming_id: 'main', is_final: false });
  same('the last chunk', toAgentMessage({ t: 12, m: 'c', ts: 1, w: 'w1', f: 1, i: 'act' }, 'r').details, { streaming_id: 'w1', is_final: true, activity_id: 'act' });
  same('details of a chunk', toAgentMessage({ t: 12, ts: 1, d: { streaming_id: 'S', activity_id: 'Z', x: 1 }, i: 'I' }, 'r').details,
    { streaming_id: 'S', activity_id: 'I', x: 1, is_final: false });
  same('the activity of an answer', toAgentMessage({ t: 7, ts: 1, i: 'act' }).activity_id, 'act');
  same('create', createCompactMessage(12, { message: 'm', isFinal: true, timestamp: 5, workstreamId: 'w', details: { a: 1 } }), { t: 12, m: 'm', w: 'w', d: { a: 1 }, f: 1, ts: 5 });
  same('create an empty one', createCompactMessage(12, { message: '', isFinal: false, timestamp: 0, workstreamId: 'main' }), { t: 12 });
  for (const compact of [{ t: 7, m: 'x', ts: 1, i: 'act' }, { t: 12, m: 'c', w: 'w', d: { x: 1 }, f: 1, ts: 1, i: 'a' }, { t: 9, m: 'which?', d: { ux: { options: [{ id: 'a' }] } }, ts: 2 }, { t: 2, d: [1], ts: 3 }]) {
    same('there and back', toCompactMessage(toAgentMessage(compact, 'r')), compact);
  }
  same('stale', [isStale(3, 5), isStale(5, 5), isStale(7, 5), isStale(null, 5), computeStaleLag(3, 5), computeStaleLag(7, 5), computeStaleLag(undefined, 5)],
    [true, false, false, null, 2, 0, null]);
  same('a uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(sdk.uuid()), true);
}

// A server of the documents alone, as a fetch: answers are used up in order.
const json = body => new Response(JSON.stringify(body), { headers: { 'Content-Type': 'application/json' } });
const events = (...list) => new Response(list.map(m => `data: ${JSON.stringify(m)}\n\n`).join(''), { headers: { 'Content-Type': 'text/event-stream' } });
function server(...answers) {
  const asked = [];
  const fetch = async (url, { headers, signal }) => {
    asked.push(url.replace('http://h', '') + (headers['Last-Event-ID'] ? `#${headers['Last-Event-ID']}` : ''));
    const next = answers.length > 1 ? answers.shift() : answers[0];
    if (next instanceof Error) throw next;
    if (typeof next === 'function') return next(signal);
    return next.clone();
  };
  return { asked, options: { baseUrl: 'http://h', token: 'token', fetch } };
}

// quick makes the waits of the client short, and returns how long they would have been.
async function quick(act) {
  const real = globalThis.setTimeout, waits = [];
  globalThis.setTimeout = (f, ms) => {
    if (ms === 45000) return 0; // the time after which a silent stream is dead
    waits.push(ms);
    return real(f, 0);
  };
  try { await act(); } finally { globalThis.setTimeout = real; }
  return waits;
}

async function phases(sdk) {
  const { WorkflowsApi } = sdk, run = { runId: 'r', workflowId: 'w' };
  const q = { t: 8, m: 'so?', ts: 10 }, a = { t: 12, m: 'a', ts: 20 }, b = { t: 12, m: 'b', ts: 30 }, end = { t: 4, ts: 40 };

  let s = server(json({ messages: [q, a, a] }), events(a, a, a, b), events(b, end)), heard = [];
  let waits = await quick(() => new WorkflowsApi(s.options).streamMessages(run, (m, compact) => heard.push(compact)));
  same('nothing is lost or doubled', heard, [q, a, a, a, b, end]);
  same('requests', s.asked, ['/runs/w/r/updates?since=0&after=0', '/runs/w/r/stream?skipHistory=true&since=20', '/runs/w/r/stream?skipHistory=true&since=30']);
  same('a wait', waits.length === 1 && waits[0] >= 900 && waits[0] <= 1000, true);

  s = server(json({ messages: [] }), new Response(`id: 0\ndata: ${JSON.stringify(q)}\n\nid: 7\r\ndata: ${JSON.stringify(a)}\r\n\r\nid: 8\ndata: {"t`), events(end));
  heard = [];
  await quick(() => new WorkflowsApi(s.options).streamMessages('r', (m, compact) => heard.push(compact)));
  same('behind an event', [heard, s.asked.slice(1)], [[q, a, end], ['/api/v1/agent/runs/r/stream?skipHistory=true&since=1', '/api/v1/agent/runs/r/stream?skipHistory=true&since=20#7']]);

  s = server(json({ messages: [q, { t: 4, w: 'w2', ts: 15 }, end] }));
  const last = await new WorkflowsApi(s.options).streamMessages(run, undefined, 5);
  same('an ended run', [last.type, s.asked], [4, ['/runs/w/r/updates?since=5&after=0']]);

  s = server(new TypeError('no network'));
  const states = [];
  let error;
  waits = await quick(() => new WorkflowsApi(s.options).streamMessages(run, undefined, 0, { onConnection: c => states.push(c.state) }).catch(e => { error = e; }));
  same('attempts', [s.asked.length, waits.length, error.status, states.filter(x => x === 'waiting').length], [11, 10, 0, 10]);
  waits.forEach((ms, n) => {
    const most = Math.min(1000 * 2 ** n, 30000);
    same(`wait ${n}: ${ms}`, ms >= most * 0.9 && ms <= most, true);
  });

  s = server(new Response('{"error":{"code":"unauthorized","message":"no token"}}', { status: 401 }));
  waits = await quick(() => new WorkflowsApi(s.options).streamMessages(run).catch(e => { error = e; }));
  same('a refusal', [s.asked.length, waits.length, error.status, error.code, error.message], [1, 0, 401, 'unauthorized', 'no token']);

  s = server(new Response('', { status: 503, headers: { 'Retry-After': '7' } }), json({ messages: [end] }));
  waits = await quick(() => new WorkflowsApi(s.options).streamMessages(run));
  same('Retry-After', waits, [7000]);

  const endless = signal => new Response(new ReadableStream({ start(c) { signal.addEventListener('abort', () => c.error(signal.reason)); } }));
  s = server(json({ messages: [q] }), endless);
  const stop = new AbortController();
  const nothing = await new WorkflowsApi(s.options).streamMessages(run, () => setTimeout(() => stop.abort()), 0, { signal: stop.signal });
  same('an abort', nothing, null);

  let refused;
  try { new WorkflowsApi({ baseUrl: 'file:///sdk' }); } catch (error) { refused = error instanceof TypeError; }
  same('an address that is none of a daemon', refused, true);
}

// until repeats a step until it is good.
async function until(step, good) {
  for (; ;) {
    const value = await step();
    if (good(value)) return value;
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}

async function threads(sdk, env, tell) {
  const api = new sdk.ThreadsApi(env.client), workflows = new sdk.WorkflowsApi(env.client);
  const thread = await api.create();
  const stop = new AbortController(), heard = [];
  const streaming = api.streamMessages(thread.id, m => { heard.push(m.content); if (heard.length === 4) stop.abort(); }, 0, { signal: stop.signal });
  const first = await api.sendMessage(thread.id, { content: 'Hello!', client_message_id: 'unique-id-123' });
  const again = await api.sendMessage(thread.id, { content: 'Hello!', client_message_id: 'unique-id-123' });
  same('the same message', [again.id, again.client_message_id], [first.id, 'unique-id-123']);
  const page = await until(() => api.retrieveMessages(thread.id), p => p.messages.length === 2);
  same('the thread', page.messages.map(m => [m.thread_seq, m.role, m.content]), [[1, 'user', 'Hello!'], [2, 'assistant', 'Hello!']]);
  same('its list', (await api.list()).threads[0].id, thread.id);
  same('its state', (await api.retrieve(thread.id)).thread_seq, 2);
  const file = await workflows.uploadFile(new Blob(['a file'], { type: 'text/plain' }), { name: 'a.txt' });
  await api.sendMessage(thread.id, { content: 'With a file', attachments: [{ url: file.url, name: file.name }] });
  await streaming;
  same('the stream', heard, ['Hello!', 'Hello!', 'With a file', 'With a file']);
  const day = await api.history({ threadId: thread.id });
  same('the history', day.messages.map(m => m.content), heard);

  const run = await workflows.start({ message: 'echo this' });
  const last = await workflows.streamMessages(run);
  const messages = await workflows.retrieveMessages(run);
  same('a run', [last.type, last.workflow_run_id, messages.map(m => [m.type, m.message])], [4, run.run_id, [[8, 'echo this'], [7, 'echo this'], [4, '']]]);
  same('a run by its id', (await workflows.retrieveMessages(run.run_id)).length, 3);
  await workflows.sendSignal(run, 'UserInput', 'and this');
  await workflows.sendSignal(run, 'FileUploaded', { url: file.url });
  await until(() => api.retrieveMessages(run.workflow_id), p => p.messages.length === 6);
  let refused;
  await workflows.sendSignal(run, 'Stop').catch(e => { refused = e; });
  same('a stop of an ended run', refused.status, 410);
  await workflows.postMessage(run, { t: 3, m: 'x' }).catch(e => { refused = e; });
  same('a message of a user', [refused.status, refused.code], [403, 'forbidden']);
  const pages = new sdk.ThreadsApi({ ...env.client, html: true }), rich = new sdk.WorkflowsApi({ ...env.client, html: true });
  const bold = await rich.start({ message: '**bold** <b>' }), html = '<p><strong>bold</strong> &lt;b&gt;</p>', seen = [];
  await rich.streamMessages(bold, m => { if (m.type !== 12) seen.push(m.html ?? null); });
  same('HTML of a run', [seen, (await rich.retrieveMessages(bold)).map(m => m.html ?? null)], [[null, html, null], [null, html, null]]);
  same('HTML of a thread', (await pages.retrieveMessages(bold.workflow_id)).messages.map(m => m.html ?? null), [null, html]);
  same('HTML of the history', (await pages.history({ threadId: bold.workflow_id })).messages.map(m => m.html ?? null), [null, html]);
  const url = await workflows.streamUrl(run);
  const body = await (await fetch(url)).text();
  same('a stream by a ticket', body.includes('"m":"echo this"'), true);
  same('the ticket is used up', (await fetch(url)).status, 401);
}

async function run(sdk, env, tell) {
  const workflows = new sdk.WorkflowsApi(env.client);
  const handle = await workflows.start({ message: 'count' });
  tell({ handle });
  const last = await workflows.streamMessages(handle, (m, compact) => tell({ message: compact }), 0, { onConnection: c => c.state === 'waiting' && tell({ waiting: c.attempt }) });
  tell({ last });
  tell({ history: (await (await workflows.request(`/runs/${handle.workflow_id}/${handle.run_id}/updates`)).json()).messages });
}

const scenarios = { vectors, phases, threads, run };

// play runs a scenario and tells its end.
export async function play(name, sdk, env, tell) {
  try {
    await scenarios[name](sdk, env, tell);
    tell({ done: true });
  } catch (error) {
    tell({ done: true, fault: `${error?.stack ?? error}` });
  }
}
