/** The version of this package, which is the version of the API that it was made for. */
export const VERSION = "0.3.0";
