/** Settings without effect in a cluster, where Argo CD or Flux takes the place of the repository of a host. */
export const OF_HOSTS = {
  SVC_MDNS: true,
  SVC_CAPTURE: true,
  SVC_QUIET_PERIOD: true,
  SVC_GIT_URL: true,
  SVC_GIT_REF: true,
  SVC_GIT_PATH: true,
  SVC_GIT_INTERVAL: true,
  SVC_GIT_KEY: true,
  SVC_GIT_KNOWN_HOSTS: true,
  SVC_GIT_ALLOWED_SIGNERS: true,
  SVC_GIT_DECRYPT: true,
  SVC_GIT_SELF_HEAL: true,
  SVC_GIT_WEBHOOK_SECRET_FILE: true,
  SVC_CHANGE_WINDOWS: true,
} as const;
