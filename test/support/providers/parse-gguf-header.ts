/** Parses a header that is in memory as a whole, as a provider does it window by window. */
import { NO_PROGRESS, parseHeaderWindow, type ParsedHeader } from '../../../src/providers/gguf/decide/parse-gguf-header.ts';

export function parseGgufHeader(bytes: Uint8Array): ParsedHeader {
  for (let progress = NO_PROGRESS; ;) {
    const at = progress.position;
    const parsed = parseHeaderWindow(progress, bytes.subarray(at));
    if (parsed.kind !== 'more' || parsed.progress.position >= bytes.length || parsed.progress.position === at) return parsed;
    progress = parsed.progress;
  }
}
