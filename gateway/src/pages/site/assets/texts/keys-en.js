// The English texts of API keys.

export const texts = {
  keysHelp: "Programs act for you with a key. Give each its own, with no more scopes than it needs. Changing your password does not end keys.",
  noKeys: "There are no API keys.",
  keyMade: "Made:",
  keyExpires: "Expires:",
  never: "never",
  keyOff: "Off until an administrator confirms it",
  confirmKey: "Confirm",
  keyConfirmed: "The key is on again.",
  endKey: "End",
  keyEnded: "The key has ended.",
  makeKey: "Make a key",
  keyName: "Name",
  keyScopes: "What it may do",
  keyEnd: "Expires (optional)",
  keyEndHelp: "At the end of that day. You get a message before.",
  newKey: "The new key",
  newKeyHelp: "Copy it now: it is not shown again.",
  "problem too-many-keys": "You have as many keys as a user can have. End one that is no longer needed.",
  "problem user-inactive": "This account is inactive or is being deleted.",
};
