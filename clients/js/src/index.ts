export { Countersign } from "./client.js";
export {
  CancelledError,
  ConnectionError,
  CountersignError,
  DecisionTimeoutError,
  ProblemError,
  RejectedError,
  UnexpectedAnswerError,
  VerificationError,
  isTransient,
} from "./errors.js";
export type { VerificationCode } from "./errors.js";
export type { operations, paths } from "./openapi.js";
export type * from "./types.js";
export { newWebhookSecret, verify } from "./verify.js";
export type { HeadersLike, RawBody, VerifyOptions } from "./verify.js";
export { VERSION } from "./version.js";
export type { Webhooks } from "./webhooks.js";
