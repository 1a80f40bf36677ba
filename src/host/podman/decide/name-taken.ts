/** What to do about a container that has the name of a slot's container. Pure. */
import { shorten } from '../../../schema/shorten.ts';

/** Of a path in a message. */
const LONGEST_PATH = 200;

/**
 * @param name of the container.
 * @param owner the instance in its label, undefined if it has none: svc did not create it, or podman does not show it.
 * @param instance of this service.
 */
export function nameTakenMessage(name: string, owner: string | undefined, instance: string): string {
  if (owner === undefined) {
    return `Remove the container "${name}" with "podman rm -f ${name}", or give it another name: the slot needs this name, and another program has taken it`;
  }
  if (owner === instance) return `Wait until the container "${name}" is removed: it runs an earlier version of this slot`;
  const directory = JSON.stringify(shorten(owner, LONGEST_PATH));
  return `Give the slot another name, because the service with the configuration directory ${directory} has a container "${name}"; if that service is no longer used, remove its container with "podman rm -f ${name}"`;
}
