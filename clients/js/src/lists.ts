import { UnexpectedAnswerError } from "./errors.js";
import type { Call, Transport } from "./transport.js";
import type { ListOptions, Task, TaskFilters } from "./types.js";

const PATH = "/people-task/tasks";
const FILTERS = ["status", "approver", "requester", "title", "public", "text"] as const;

/** The parameters of a list or a count. */
export function filterQuery(filters: TaskFilters): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of FILTERS) {
    const value = filters[name];
    if (value !== undefined) query.append("filter", `${name}:${String(value).replaceAll(",", "\\,")}`);
  }
  if (filters.role !== undefined) query.set("role", filters.role);
  if (filters.pattern !== undefined) query.set("pattern", filters.pattern);
  return query;
}

/** Yields the tasks of all pages, each once. */
export function listTasks(transport: Transport, options: ListOptions): AsyncGenerator<Task, void, undefined> {
  const query = filterQuery(options);
  query.set("limit", String(options.pageSize ?? 100));
  if (options.sort !== undefined) query.set("sort", options.sort);
  if (options.include?.length) query.set("include", options.include.join(","));
  return listRows<Task>(transport, { method: "GET", path: PATH, query, signal: options.signal });
}

/** Yields the rows of all pages of a list, each once. */
export async function* listRows<Row extends { id: string }>(transport: Transport, call: Call): AsyncGenerator<Row, void, undefined> {
  let query = call.query;
  // A row that is made meanwhile moves the others to the next page.
  const seen = new Set<string>();
  for (let last = ""; query && String(query) !== last; ) {
    last = String(query);
    const { body, headers } = await transport.send<Row[]>({ ...call, query });
    if (!Array.isArray(body)) throw new UnexpectedAnswerError("The answer is no list.", 200);
    for (const row of body) {
      if (seen.has(row.id)) continue;
      seen.add(row.id);
      yield row;
    }
    query = nextPage(headers.get("link"));
  }
}

/** The query of the next page. Its path and host are known, so that no answer leads the key elsewhere. */
export function nextPage(link: string | null): URLSearchParams | undefined {
  const found = link?.match(/<[^>?]*\?([^>]*)>\s*;\s*rel="?next"?/);
  return found ? new URLSearchParams(found[1]) : undefined;
}
