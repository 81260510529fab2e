import { readFileSync } from "node:fs";

/** What the server is told by its environment. */
export interface Settings {
  /** The address of Countersign, without a slash at its end. */
  url: string;
  /** The address that people open in a browser, without a slash at its end. */
  publicUrl: string;
  key: string;
  /** Who needs the decisions. Without it, the user whom the key belongs to. */
  requester: string | undefined;
  /** The only people who may be asked, and all addresses of the domains that begin with `@`. Empty: everyone. */
  approvers: string[];
  deciders: "approver" | "signed-in" | undefined;
  notify: boolean | undefined;
}

/** A setting is missing or invalid. The message names the variable, and never has the value of a key. */
export class SettingsError extends Error {}

type Environment = Record<string, string | undefined>;

/** Reads the settings. Empty variables count as absent. */
export function readSettings(environment: Environment): Settings {
  const get = (name: string) => environment[`COUNTERSIGN_${name}`]?.trim() || undefined;
  const url = readUrl("COUNTERSIGN_URL", get("URL"));
  if (!url) throw new SettingsError("Set COUNTERSIGN_URL to the address of Countersign.");
  const deciders = get("DECIDERS");
  if (deciders !== undefined && deciders !== "approver" && deciders !== "signed-in") {
    throw new SettingsError("COUNTERSIGN_DECIDERS must be `approver` or `signed-in`.");
  }
  return {
    url,
    publicUrl: readUrl("COUNTERSIGN_PUBLIC_URL", get("PUBLIC_URL")) ?? url,
    key: readKey(get("KEY"), get("KEY_FILE")),
    requester: readAddress("COUNTERSIGN_REQUESTER", get("REQUESTER")),
    approvers: readApprovers(get("APPROVERS")),
    deciders,
    notify: readBoolean("COUNTERSIGN_NOTIFY", get("NOTIFY")),
  };
}

function readUrl(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new SettingsError(`${name} must be an address such as https://countersign.example.com.`);
  }
  if (!["http:", "https:"].includes(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new SettingsError(`${name} must begin with https:// or http://, without a password, \`?\` or \`#\`.`);
  }
  return url.href.replace(/\/+$/, "");
}

function readKey(key: string | undefined, file: string | undefined): string {
  if (key !== undefined && file !== undefined) {
    throw new SettingsError("Set COUNTERSIGN_KEY or COUNTERSIGN_KEY_FILE, not both.");
  }
  if (file !== undefined) {
    try {
      key = readFileSync(file, "utf8").trim();
    } catch {
      throw new SettingsError("The file of COUNTERSIGN_KEY_FILE cannot be read.");
    }
  }
  if (!key) throw new SettingsError("Set COUNTERSIGN_KEY to an API key with the scopes tasks:read and tasks:write.");
  if (!/^csk_[0-9A-Za-z]+$/.test(key)) {
    throw new SettingsError("COUNTERSIGN_KEY must be an API key, which begins with csk_. The token of a user decides tasks.");
  }
  return key;
}

function readApprovers(text: string | undefined): string[] {
  const approvers = (text ?? "").split(",").map((address) => address.trim().toLowerCase());
  const given = approvers.filter((address) => address !== "");
  if (!given.every((address) => /^[^@\s]*@[^@\s]+$/.test(address))) {
    throw new SettingsError("COUNTERSIGN_APPROVERS must be e-mail addresses, or domains that begin with @, separated by commas.");
  }
  return given;
}

function readAddress(name: string, text: string | undefined): string | undefined {
  if (text !== undefined && !/^[^@\s]+@[^@\s]+$/.test(text)) throw new SettingsError(`${name} must be an e-mail address.`);
  return text;
}

function readBoolean(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text !== "true" && text !== "false") throw new SettingsError(`${name} must be true or false.`);
  return text === "true";
}
