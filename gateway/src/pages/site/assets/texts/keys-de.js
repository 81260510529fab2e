// The German texts of API keys.

export const texts = {
  keysHelp: "Mit einem Schlüssel handeln Programme für Sie. Geben Sie jedem einen eigenen, mit nicht mehr Rechten, als es braucht. Ein neues Passwort beendet keine Schlüssel.",
  noKeys: "Es gibt keine API-Schlüssel.",
  keyMade: "Erstellt:",
  keyExpires: "Läuft ab:",
  never: "nie",
  keyOff: "Aus, bis eine Administratorin oder ein Administrator ihn bestätigt",
  confirmKey: "Bestätigen",
  keyConfirmed: "Der Schlüssel gilt wieder.",
  endKey: "Beenden",
  keyEnded: "Der Schlüssel ist beendet.",
  makeKey: "Schlüssel erstellen",
  keyName: "Name",
  keyScopes: "Was er darf",
  keyEnd: "Läuft ab (freiwillig)",
  keyEndHelp: "Am Ende dieses Tages. Vorher bekommen Sie eine Nachricht.",
  newKey: "Der neue Schlüssel",
  newKeyHelp: "Kopieren Sie ihn jetzt: Er wird nicht noch einmal angezeigt.",
  "problem too-many-keys": "Sie haben so viele Schlüssel, wie ein Konto haben kann. Beenden Sie einen, der nicht mehr gebraucht wird.",
  "problem user-inactive": "Dieses Konto ist nicht aktiv oder wird gelöscht.",
};
