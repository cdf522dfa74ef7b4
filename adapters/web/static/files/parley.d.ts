/** Parley's client: the messages of runs and the threads of the HTTP API, in browsers and in Node 20. */

/** The types of the messages of a run, with their numbers on the wire. */
export declare enum AgentMessageType {
  SYSTEM = 0,
  THOUGHT = 1,
  PLAN = 2,
  UPDATE = 3,
  COMPLETE = 4,
  WARNING = 5,
  ERROR = 6,
  ANSWER = 7,
  QUESTION = 8,
  REQUEST_INPUT = 9,
  IDLE = 10,
  TERMINATED = 11,
  STREAMING_CHUNK = 12,
  BATCH_PROGRESS = 13,
}

/** A message as it is sent. */
export interface CompactMessage {
  t: AgentMessageType;
  m?: string;
  /** The workstream; absent for `main`. */
  w?: string;
  d?: unknown;
  /** 1 for the last chunk of a text. */
  f?: 0 | 1;
  /** Milliseconds since 1970. */
  ts?: number;
  /** The activity: a whole message replaces the chunks of the same activity. */
  i?: string;
  /** The text as sanitised HTML, with the option `html`. */
  h?: string;
}

/** A message with readable names. */
export interface AgentMessage {
  timestamp: number;
  workflow_run_id: string;
  type: AgentMessageType;
  message: string;
  /** Those of a chunk have streaming_id, is_final and activity_id. */
  details?: any;
  workstream_id?: string;
  /** The activity of a message that is no chunk: it replaces the chunks of this activity. */
  activity_id?: string;
  /** The text as sanitised HTML, with the option `html`. */
  html?: string;
}

/** Reads a message in either form, or a JSON text of one. Throws for anything else. */
export declare function parseMessage(data: string | object): CompactMessage;
export declare function toAgentMessage(compact: CompactMessage, runId?: string): AgentMessage;
export declare function toCompactMessage(message: AgentMessage): CompactMessage;
export declare function createCompactMessage(type: AgentMessageType, options?: {
  message?: string; workstreamId?: string; details?: unknown; isFinal?: boolean; timestamp?: number; activityId?: string;
}): CompactMessage;

/** Whether a message that was begun at thread_seq `base` is behind the thread; null without a base. */
export declare function isStale(base: number | null | undefined, current: number): boolean | null;
/** The number of messages by which it is behind; null without a base. */
export declare function computeStaleLag(base: number | null | undefined, current: number): number | null;

/** A new UUID of version 4, also in pages without https. */
export declare function uuid(): string;

/** The error of a request. */
export declare class ParleyError extends Error {
  /** The status of HTTP; 0 if no whole answer came. */
  status: number;
  code?: string;
  fields?: { field: string; message: string }[];
  /** Seconds; 0 if the server did not say. */
  retryAfter: number;
  /** Whether the same request may succeed later. */
  readonly isPassing: boolean;
}

export interface ClientOptions {
  /** The http or https address of the server; that of this module if it is absent. A copy on disk needs it. */
  baseUrl?: string | URL;
  /** The bearer token, or a function that is called for each request. */
  token?: string | (() => string | undefined | Promise<string | undefined>);
  fetch?: typeof fetch;
  /** Messages come with their text as sanitised HTML, too. */
  html?: boolean;
}

/** A run: its id, or its id and that of its thread. */
export type Run = string | { runId: string; workflowId: string } | { run_id: string; workflow_id: string };

/**
 * What a connection does: it reads the history, it is live, it waits for its next attempt (1 s to 30 s, at
 * most ten in a row), or it has ended with the run.
 */
export type Connection =
  | { state: 'history' | 'live' | 'ended' }
  | { state: 'waiting'; attempt: number; /** Milliseconds. */ delay: number; error: ParleyError };

export interface StreamOptions {
  signal?: AbortSignal;
  onConnection?: (connection: Connection) => void;
}

export interface UploadedFile { name: string; bucket: string; path: string; mime_type: string; url: string }

declare class Api {
  constructor(options?: ClientOptions);
  /** Stores a file that a later message names by its url. */
  uploadFile(file: Blob, options?: { name?: string; signal?: AbortSignal }): Promise<UploadedFile>;
  /** A ticket that is good for one GET of a path within a minute, as `?ticket=`. */
  createTicket(path: string): Promise<string>;
}

export interface Signals {
  UserInput: string | { message: string; client_message_id?: string; metadata?: object; attachments?: { url: string; name?: string }[] };
  FileUploaded: { url: string; name?: string } | { name: string; mime_type: string; data: string };
  Stop: undefined;
}

export declare class WorkflowsApi extends Api {
  /** Starts a run in a new thread or in that of threadId. Other members are those of a RunAgentInput. */
  start(input?: { message?: string; threadId?: string; runId?: string; messages?: object[]; [member: string]: unknown },
    options?: { signal?: AbortSignal }): Promise<{ run_id: string; workflow_id: string }>;
  /** The messages of a run so far that are kept. `since` is a time in milliseconds since 1970. */
  retrieveMessages(run: Run, since?: number): Promise<AgentMessage[]>;
  /**
   * Calls onMessage with each message of a run once, in order: the history, and then the messages as they
   * come, over lost connections too. Resolves with the last message after COMPLETE or TERMINATED of
   * `main`, and with null after an abort. Rejects for an error that does not pass, and after ten attempts
   * in a row without success.
   */
  streamMessages(run: Run, onMessage?: (message: AgentMessage, compact: CompactMessage) => void, since?: number,
    options?: StreamOptions): Promise<AgentMessage | null>;
  /** The same as an iterator of compact messages. */
  messages(run: Run, since?: number, options?: StreamOptions): AsyncGenerator<CompactMessage, void>;
  /** An address with a ticket for one EventSource of the messages of a run. */
  streamUrl(run: Run, since?: number): Promise<string>;
  /** Adds a message to a run, for agents. A request with the same key adds nothing. */
  postMessage(run: Run, message: AgentMessage | CompactMessage | (AgentMessage | CompactMessage)[],
    options?: { key?: string; signal?: AbortSignal }): Promise<{ run_id: string; messages: number }>;
  /** Sends a signal. UserInput and Stop are repeated until they arrive; UserInput is recorded once. */
  sendSignal<S extends keyof Signals>(run: Run, signal: S, data?: Signals[S], options?: { signal?: AbortSignal }): Promise<any>;
  /** Gives a workstream of a run a message or a directive, or ends it, once by the key, also after the end of the run. */
  changeWorkstream(run: Run, launchId: string, action: 'messages', body: { message: string }, options?: { key?: string; signal?: AbortSignal }): Promise<{ launch_id: string }>;
  changeWorkstream(run: Run, launchId: string, action: 'steer', body: { command: string; text?: string }, options?: { key?: string; signal?: AbortSignal }): Promise<{ launch_id: string }>;
  changeWorkstream(run: Run, launchId: string, action: 'terminate', body?: {}, options?: { key?: string; signal?: AbortSignal }): Promise<{ launch_id: string }>;
}

export interface Thread { id: string; mode: 'open' | 'invocation_only'; created_at: string }

export interface ThreadMessage {
  id: string; thread_id: string; sender_id: string;
  /** With `work`: the name of the sender, and the platform or the program. */
  sender_display_name?: string; source?: string;
  role: 'user' | 'assistant' | 'system' | 'tool'; content: string;
  /** The content as sanitised HTML, with the option `html`. */
  html?: string;
  metadata: Record<string, unknown> | null; created_at: string; client_message_id: string | null; thread_seq: number;
  attachments?: { name: string; mime_type: string; size: number; type?: string; duration_ms?: number; url: string | null }[];
  /** With `work`: whether the message asks for a run, and why. */
  trigger?: 'run' | 'passive' | 'none'; reason?: string;
  /** With `work`: the run for which it has asked, or of which it is the answer, a row or a notice; absent before the run begins. */
  run_id?: string;
  base_seq?: number | null; latest_seen_seq?: number | null; server_seq_at_submit?: number; stale?: boolean | null; stale_lag?: number | null;
}

export interface Workstream {
  launch_id: string; run_id: string; agent: string; name: string; state: 'running' | 'canceling' | 'completed' | 'failed' | 'timeout' | 'canceled';
  phase: string; tool: string; iteration: number; message: string; deadline_elapsed: number; launched_at: string; ended_at: string | null;
  summary: string; error: string; interactive: boolean;
  /** The newest 20 runs of the workstream itself, the first one first. */
  own_run_ids: string[];
}

export interface NewMessage {
  content: string; client_message_id?: string; mentions?: string[]; metadata?: object; attachments?: { url: string; name?: string }[];
}

export declare class ThreadsApi extends Api {
  /** Whose the token is, as `sender_id` and name of its messages. */
  caller(): Promise<{ id: string; name: string }>;
  create(thread?: { mode?: Thread['mode']; participants?: string[] }): Promise<Thread>;
  list(page?: { before?: string; limit?: number }): Promise<{ threads: Thread[]; next: string | null }>;
  retrieve(id: string): Promise<Thread & { participants: { id: string; name: string }[]; thread_seq: number }>;
  update(id: string, thread: { mode: Thread['mode'] }): Promise<Thread>;
  retrieveMessages(id: string, page?: { after?: number; before?: number; limit?: number; work?: boolean }): Promise<{ messages: ThreadMessage[]; next: number | null }>;
  /** One day of a thread, the newest if `before` is absent. */
  history(page?: { threadId?: string; before?: string; beforeSeq?: number }): Promise<any>;
  /** Sends a message until it arrives. It is recorded once: it has a client_message_id, which may be given. */
  sendMessage(id: string, message: string | NewMessage, options?: { signal?: AbortSignal }): Promise<ThreadMessage>;
  sendAgentMessage(id: string, message: string | NewMessage & { base_seq?: number; latest_seen_seq?: number },
    options?: { signal?: AbortSignal }): Promise<ThreadMessage>;
  /** Calls onMessage with each message behind a thread_seq, and with its edits and its deletion, until an abort. */
  streamMessages(id: string, onMessage: (message: ThreadMessage, kind: 'message' | 'edit' | 'delete') => void, after?: number,
    options?: StreamOptions): Promise<void>;
  /** With `work`, it also gets the run that goes on and the workstreams of the thread, when the stream begins and after each change. */
  streamMessages(id: string, onMessage: (event: ThreadMessage | { run_id: string } | Workstream,
    kind: 'message' | 'edit' | 'delete' | 'run' | 'workstream') => void, after: number, options: StreamOptions & { work: true }): Promise<void>;
}
