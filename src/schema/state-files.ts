/** Names of files in the state directory that more than one part of the program knows. */

/** The socket through which `svcctl` reaches a service with authentication, as root or as the user of the service. */
export const LOCAL_SOCKET = 'api.sock';
