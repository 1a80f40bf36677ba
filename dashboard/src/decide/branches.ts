/**
 * Versions of a message: editing a question or repeating an answer keeps what followed before. The list of messages is
 * the visible branch, and its message with versions holds the others, so lists without any are valid, too. Pure.
 */
import type { ChatMessage } from './chat.ts';

type Messages = readonly ChatMessage[];

/** Continues after `keep` of the messages; what followed them becomes another version. */
export function addVersion(messages: Messages, added: Messages, keep = messages.length): Messages {
  const versions = [...versionsAt(messages, keep), added];
  return show(messages.slice(0, keep), versions, versions.length - 1);
}

/** `version` counts from 0, in the order in which they were made. Another number changes nothing. */
export function showVersion(messages: Messages, index: number, version: number): Messages {
  const versions = versionsAt(messages, index);
  return versions[version] === undefined ? messages : show(messages.slice(0, index), versions, version);
}

function versionsAt(messages: Messages, index: number): readonly Messages[] {
  const [first, ...rest] = messages.slice(index);
  if (first === undefined) return [];
  const { versions: { shown, others } = { shown: 0, others: [] }, ...message } = first;
  return others.toSpliced(shown, 0, [message, ...rest]);
}

function show(kept: Messages, versions: readonly Messages[], shown: number): Messages {
  const [first, ...rest] = versions[shown] ?? [];
  if (first === undefined) return kept;
  if (versions.length === 1) return [...kept, first, ...rest];
  return [...kept, { ...first, versions: { shown, others: versions.toSpliced(shown, 1) } }, ...rest];
}
