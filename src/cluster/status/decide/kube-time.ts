/** Times in the form of Kubernetes: RFC 3339 in UTC, whole seconds. Pure. */

export const kubeTime = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;
