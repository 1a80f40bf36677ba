/** An error with a message for the user, which is printed without a stack. */
export function userError(message, exitCode = 1) {
  return Object.assign(new Error(message), { isUserError: true, exitCode });
}
