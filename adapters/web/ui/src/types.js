// The types of messages by their numbers, as AgentMessageType of the client has them. A build puts the numbers in place of the names.
export const SYSTEM = 0, THOUGHT = 1, PLAN = 2, UPDATE = 3, COMPLETE = 4, WARNING = 5, ERROR = 6, ANSWER = 7, QUESTION = 8
export const REQUEST_INPUT = 9, IDLE = 10, TERMINATED = 11, STREAMING_CHUNK = 12, BATCH_PROGRESS = 13
