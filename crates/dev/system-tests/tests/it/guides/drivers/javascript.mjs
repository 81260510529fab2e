import { readFileSync } from "node:fs";

function accepted(check) {
  try {
    check();
    return "yes";
  } catch {
    return "no";
  }
}

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const call of given.calls) {
  const body = Buffer.from(call.body);
  console.log(
    accepted(() => verify(given.secret, call.headers, body)),
    accepted(() => verifyWithKeys(given.keys, call.headers, body)),
  );
}
