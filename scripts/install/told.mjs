/** An error whose message is meant for the person at the terminal: shown as it is, without a stack. */
export function told(message, exitCode = 1) {
  return Object.assign(new Error(message), { told: true, exitCode });
}
