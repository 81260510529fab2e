const SECRETS = ["approverSecret", "requesterSecret"] as const;

/** Makes `console.log` show a task without its secrets. Its fields and its JSON stay as they are. */
export function hideSecrets<T extends object>(task: T): T {
  const shown = () => {
    const copy = { ...task } as Record<string, unknown>;
    for (const name of SECRETS) if (name in copy) copy[name] = "[hidden]";
    return copy;
  };
  for (const symbol of ["nodejs.util.inspect.custom", "Deno.customInspect"]) {
    Object.defineProperty(task, Symbol.for(symbol), { value: shown, enumerable: false });
  }
  return task;
}
