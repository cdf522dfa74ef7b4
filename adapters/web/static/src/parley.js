// Parley's client: the messages of runs and the threads of the HTTP API, in browsers and in Node.
// parley.d.ts describes what it exports.

const types = ['SYSTEM', 'THOUGHT', 'PLAN', 'UPDATE', 'COMPLETE', 'WARNING', 'ERROR', 'ANSWER', 'QUESTION',
  'REQUEST_INPUT', 'IDLE', 'TERMINATED', 'STREAMING_CHUNK', 'BATCH_PROGRESS'];
export const AgentMessageType = Object.freeze(Object.fromEntries(types.flatMap((name, n) => [[name, n], [n, name]])));
const { UPDATE, COMPLETE, TERMINATED, STREAMING_CHUNK } = AgentMessageType;

const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);

function typeOf(value) {
  if (Number.isInteger(value) && value >= 0) return value;
  const n = typeof value === 'string' ? types.indexOf(value.toUpperCase()) : -1;
  return n < 0 ? UPDATE : n;
}

export function parseMessage(data) {
  const message = typeof data === 'string' ? JSON.parse(data) : data;
  if (isObject(message) && 't' in message) return message;
  if (isObject(message) && 'type' in message) return toCompactMessage(message);
  throw new Error('Unknown message format');
}

export function createCompactMessage(type, { message, workstreamId, details, isFinal, timestamp, activityId } = {}) {
  const compact = { t: type };
  if (message) compact.m = message;
  if (workstreamId && workstreamId !== 'main') compact.w = workstreamId;
  if (details) compact.d = details;
  if (isFinal) compact.f = 1;
  if (timestamp) compact.ts = timestamp;
  if (activityId) compact.i = activityId;
  return compact;
}

export function toCompactMessage(msg) {
  const type = typeOf(msg.type);
  const options = { message: msg.message, workstreamId: msg.workstream_id, details: msg.details, timestamp: msg.timestamp, activityId: msg.activity_id };
  if (type === STREAMING_CHUNK && isObject(msg.details)) {
    const { is_final, activity_id, streaming_id, ...rest } = msg.details;
    Object.assign(options, { isFinal: is_final, activityId: activity_id });
    if (streaming_id !== (msg.workstream_id || 'main') && streaming_id !== undefined) rest.streaming_id = streaming_id;
    options.details = Object.keys(rest).length ? rest : undefined;
  }
  return createCompactMessage(type, options);
}

export function toAgentMessage(compact, runId) {
  const message = {
    timestamp: compact.ts || Date.now(), workflow_run_id: runId ?? '', type: compact.t,
    message: compact.m ?? '', workstream_id: compact.w || 'main',
  };
  if (compact.d !== undefined && compact.d !== null) message.details = compact.d;
  if (compact.h !== undefined) message.html = compact.h;
  if (compact.t === STREAMING_CHUNK) {
    const given = isObject(compact.d) ? compact.d : {};
    message.details = {
      ...given,
      streaming_id: typeof given.streaming_id === 'string' ? given.streaming_id : message.workstream_id,
      is_final: Number(compact.f) === 1,
    };
    if (compact.i) message.details.activity_id = compact.i;
  } else if (compact.i) {
    message.activity_id = compact.i;
  }
  return message;
}

export const computeStaleLag = (base, current) => (base ?? null) === null ? null : Math.max(0, current - base);
export const isStale = (base, current) => (base ?? null) === null ? null : computeStaleLag(base, current) > 0;

// ParleyError is the only error of a request. status is 0 if no whole answer came.
export class ParleyError extends Error {
  constructor(message, { status = 0, code, fields, retryAfter = 0, cause } = {}) {
    super(message, { cause });
    Object.assign(this, { name: 'ParleyError', status, code, fields, retryAfter });
  }
  get isPassing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

async function failure(response) {
  const { error } = await response.json().catch(() => ({}));
  const fields = (error?.fields ?? []).map(f => `; ${f.field}: ${f.message}`).join('');
  return new ParleyError((error?.message ?? `the server answered ${response.status}`) + fields, {
    status: response.status, code: error?.code, fields: error?.fields, retryAfter: Number(response.headers.get('Retry-After')) || 0,
  });
}

const unreachable = cause => new ParleyError(`no answer from the server: ${cause?.message ?? cause}`, { cause });

function sleep(ms, signal) {
  return new Promise(resolve => {
    const end = () => { clearTimeout(timer); signal?.removeEventListener('abort', end); resolve(); };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}

const [firstDelay, lastDelay, maxAttempts] = [1000, 30000, 10];
// silence is the time without a byte after which a stream is dead: the server sends one in 15 s.
const silence = 45000;

// Backoff waits between the attempts of one request. It throws an error that does not pass, and the
// eleventh in a row.
class Backoff {
  attempts = 0;
  constructor({ signal, onConnection } = {}) { Object.assign(this, { signal, onConnection }); }
  async wait(error) {
    if (!error.isPassing || this.attempts >= maxAttempts) throw error;
    const grown = Math.min(firstDelay * 2 ** this.attempts++, lastDelay) * (1 - Math.random() / 10);
    const delay = Math.max(grown, error.retryAfter * 1000);
    this.onConnection?.({ state: 'waiting', attempt: this.attempts, delay, error });
    await sleep(delay, this.signal);
  }
}

// until repeats a request that may be repeated until it has an answer.
async function until(request, options) {
  for (const backoff = new Backoff(options); ;) {
    try {
      return await request();
    } catch (error) {
      if (options?.signal?.aborted) throw error;
      await backoff.wait(error);
    }
  }
}

export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = bytes[6] & 15 | 64;
  bytes[8] = bytes[8] & 63 | 128;
  const hex = Array.from(bytes, b => b.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const query = values => {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== false);
  return given.length ? `?${new URLSearchParams(given)}` : '';
};

// parse yields the server-sent events of a body. touch is called for each piece that arrives.
async function* parse(body, touch) {
  const reader = body.getReader(), decoder = new TextDecoder();
  let rest = '', event = { data: '' }, id = '';
  try {
    for (; ;) {
      const { done, value } = await reader.read().catch(cause => { throw unreachable(cause); });
      if (done) return;
      touch();
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop();
      for (const line of lines.map(l => l.replace(/\r$/, ''))) {
        if (line === '') {
          if (event.data) yield { ...event, id, data: event.data.slice(0, -1) };
          event = { data: '' };
          continue;
        }
        const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
        if (field === 'data') event.data += value + '\n';
        else if (field === 'event') event.kind = value;
        else if (field === 'id') id = value;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

class Api {
  constructor({ baseUrl, token, fetch, html = false } = {}) {
    this.baseUrl = String(baseUrl ?? new URL('..', import.meta.url)).replace(/\/+$/, '');
    if (!/^https?:$/.test(new URL(this.baseUrl || '.', globalThis.location?.href ?? import.meta.url).protocol)) {
      throw new TypeError("baseUrl must be the daemon's http or https address, such as http://127.0.0.1:8484");
    }
    this.token = token;
    this.fetch = fetch ?? ((...args) => globalThis.fetch(...args));
    this.html = html;
  }

  async request(path, { method = 'GET', body, headers = {}, signal } = {}) {
    const token = typeof this.token === 'function' ? await this.token() : this.token;
    headers = { ...headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined && !(body instanceof FormData)) {
      headers['Content-Type'] = 'application/json';
      body = JSON.stringify(body);
    }
    const { fetch } = this;
    const response = await fetch(this.baseUrl + path, { method, body, headers, signal }).catch(cause => { throw unreachable(cause); });
    if (!response.ok) throw await failure(response);
    return response;
  }

  async json(path, options) {
    const response = await this.request(path, options);
    return response.json().catch(cause => { throw unreachable(cause); });
  }

  post(path, body, options) { return this.json(path, { ...options, method: 'POST', body }); }

  async createTicket(path) { return (await this.post('/api/v1/tickets', { path })).ticket; }

  async uploadFile(file, { name = file.name ?? 'file', signal } = {}) {
    const form = new FormData();
    form.append('file', file, name);
    return { name, ...await this.post('/api/v1/agent/attachments', form, { signal }) };
  }

  // connect yields the events of one connection.
  async *connect({ path, headers }, { signal, onConnection }) {
    const own = new AbortController(), abort = () => own.abort();
    signal?.addEventListener('abort', abort);
    let timer;
    const touch = () => { clearTimeout(timer); timer = setTimeout(abort, silence); };
    try {
      touch();
      const response = await this.request(path, { headers, signal: own.signal });
      onConnection?.({ state: 'live' });
      if (response.status !== 204) yield* parse(response.body, touch);
      return response.status === 204;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      abort();
    }
  }

  // follow yields the events of a stream, and connects again at the place that where returns after
  // each loss.
  async *follow(where, options, backoff) {
    while (!options.signal?.aborted) {
      const begun = Date.now();
      try {
        if (yield* this.connect(where(), options)) return;
        throw new ParleyError('the stream ended early');
      } catch (error) {
        if (options.signal?.aborted) return;
        if (Date.now() - begun > lastDelay) backoff.attempts = 0;
        await backoff.wait(error);
      }
    }
  }
}

const isLast = m => (m.t === COMPLETE || m.t === TERMINATED) && (!m.w || m.w === 'main');

// ids returns the ids of a run that is given by its id, or by its id and its thread's in either form.
function ids(run) {
  const runId = typeof run === 'string' ? run : run?.runId ?? run?.run_id;
  if (!runId) throw new TypeError('a run is its id, or {runId, workflowId}');
  return { runId, workflowId: run.workflowId ?? run.workflow_id };
}

function runPath(run) {
  const { runId, workflowId } = ids(run);
  const name = encodeURIComponent(runId);
  return workflowId ? `/runs/${encodeURIComponent(workflowId)}/${name}` : `/api/v1/agent/runs/${name}`;
}

// changePath names the thread of a run, too, because runs of several threads may have the same name.
function changePath(run, what) {
  const { runId, workflowId } = ids(run);
  return `/runs/${encodeURIComponent(runId)}/${what}` + query({ thread_id: workflowId });
}

export class WorkflowsApi extends Api {
  async start({ message, threadId = uuid(), runId = uuid(), messages, ...rest } = {}, options) {
    messages ??= [{ id: uuid(), role: 'user', content: message ?? '' }];
    const input = { threadId, runId, state: {}, tools: [], context: [], forwardedProps: {}, ...rest, messages };
    const accepted = await until(() => this.post('/api/v1/agent/runs', input, options), options);
    return { run_id: accepted.runId, workflow_id: accepted.threadId };
  }

  // page reads the history behind a position: the messages, and next if there are more.
  page(run, since, after, signal) {
    return this.json(runPath(run) + '/updates' + query({ since, after, html: this.html }), { signal });
  }

  async retrieveMessages(run, since = 0) {
    const list = [];
    for (let after = 0; after !== undefined;) {
      const page = await this.page(run, since, after);
      list.push(...page.messages.map(m => toAgentMessage(parseMessage(m), ids(run).runId)));
      after = page.next;
    }
    return list;
  }

  // messages yields the compact messages of a run: the stored ones, and then those that come, until the
  // last one. Each comes once.
  async *messages(run, since = 0, options = {}) {
    const backoff = new Backoff(options);
    let time = since, lastId, edge = []; // edge has the messages of the very time, which come again
    const take = raw => {
      const m = parseMessage(raw);
      if (m.ts > time) [time, edge] = [m.ts, []];
      if (m.ts === time) edge.push(JSON.stringify(m));
      backoff.attempts = 0;
      return m;
    };
    options.onConnection?.({ state: 'history' });
    for (let after = 0; after !== undefined;) {
      let page;
      try {
        page = await this.page(run, since, after, options.signal);
      } catch (error) {
        if (options.signal?.aborted) return;
        await backoff.wait(error);
        continue;
      }
      for (const raw of page.messages) {
        const m = take(raw);
        yield m;
        if (isLast(m)) return;
      }
      after = page.next;
    }
    let again = [];
    const where = () => {
      again = lastId ? [] : [...edge];
      const path = runPath(run) + '/stream' + query({ skipHistory: true, since: Math.max(time, 1), html: this.html });
      return { path, headers: lastId ? { 'Last-Event-ID': lastId } : {} };
    };
    for await (const { id, data } of this.follow(where, options, backoff)) {
      if (Number(id) > 0) lastId = id;
      const known = again.indexOf(JSON.stringify(parseMessage(data)));
      if (known >= 0) {
        again.splice(known, 1);
        continue;
      }
      const m = take(data);
      yield m;
      if (isLast(m)) return;
    }
  }

  async streamMessages(run, onMessage, since = 0, options = {}) {
    let last = null;
    for await (const compact of this.messages(run, since, options)) {
      last = toAgentMessage(compact, ids(run).runId);
      onMessage?.(last, compact);
    }
    if (options.signal?.aborted) return null;
    options.onConnection?.({ state: 'ended' });
    return last;
  }

  async streamUrl(run, since = 0) {
    const path = runPath(run) + '/stream';
    return this.baseUrl + path + query({ since, html: this.html, ticket: await this.createTicket(path) });
  }

  postMessage(run, message, { key = uuid(), signal } = {}) {
    const path = changePath(run, 'updates');
    return until(() => this.post(path, message, { signal, headers: { 'Idempotency-Key': key } }), { signal });
  }

  // sendSignal repeats a UserInput, which has a key, and a Stop, but no FileUploaded.
  sendSignal(run, signal, data, options) {
    if (signal === 'UserInput') data = { client_message_id: uuid(), ...typeof data === 'string' ? { message: data } : data };
    const send = () => this.post(changePath(run, 'signals'), { signal, data }, options);
    return signal === 'FileUploaded' ? send() : until(send, options);
  }

  changeWorkstream(run, launchId, action, body = {}, { key = uuid(), signal } = {}) {
    const path = changePath(run, `workstreams/${encodeURIComponent(launchId)}/${action}`);
    return until(() => this.post(path, body, { signal, headers: { 'Idempotency-Key': key } }), { signal });
  }
}

const threadPath = id => `/api/v1/chat/threads/${encodeURIComponent(id)}`;

export class ThreadsApi extends Api {
  caller() { return this.json('/api/v1/chat/caller'); }
  create(body = {}) { return this.post('/api/v1/chat/threads', body); }
  list({ before, limit } = {}) { return this.json('/api/v1/chat/threads' + query({ before, limit })); }
  retrieve(id) { return this.json(threadPath(id)); }
  update(id, body) { return this.json(threadPath(id), { method: 'PATCH', body }); }
  history({ threadId, before, beforeSeq } = {}) {
    return this.json('/api/v1/agent/history' + query({ threadId, before, beforeSeq, html: this.html }));
  }
  retrieveMessages(id, { after, before, limit, work } = {}) {
    return this.json(threadPath(id) + '/messages' + query({ after, before, limit, work, html: this.html }));
  }

  send(path, message, options) {
    const body = { client_message_id: uuid(), ...typeof message === 'string' ? { content: message } : message };
    return until(() => this.post(path, body, options), options);
  }
  sendMessage(id, message, options) { return this.send(threadPath(id) + '/messages', message, options); }
  sendAgentMessage(id, message, options) { return this.send(threadPath(id) + '/agent-messages', message, options); }

  async streamMessages(id, onMessage, after = 0, options = {}) {
    const backoff = new Backoff(options);
    const where = () => ({ path: threadPath(id) + '/stream' + query({ after, html: this.html, work: options.work }) });
    for await (const event of this.follow(where, options, backoff)) {
      if (event.kind === undefined) after = Number(event.id);
      backoff.attempts = 0;
      onMessage?.(JSON.parse(event.data), event.kind ?? 'message');
    }
  }
}
