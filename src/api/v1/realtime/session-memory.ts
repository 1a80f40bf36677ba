/** The memory for the sound of one session: at most `SVC_AUDIO_LIMIT`, and from the memory that it shares with the bodies of requests (`SVC_BUFFER_LIMIT`). */
import type { BufferBudget } from '../../../gateway/buffer-budget.ts';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { Settings } from '../../../schema/settings/settings.ts';

export interface MemoryDeps {
  readonly budget: Pick<BufferBudget, 'reserve' | 'release'>;
  readonly settings: Pick<Settings, 'SVC_AUDIO_LIMIT'>;
}

/** Of the file that the slot gets, before its samples. */
const FILE_HEAD_BYTES = 44;

export function createSessionMemory({ budget, settings }: MemoryDeps) {
  let reserved = 0;
  return {
    /** Reserves memory for more sound, where `held` bytes are kept already. Returns why there is none. */
    reserve(bytes: number, held: number): { readonly code: ErrorCode; readonly message: string } | undefined {
      if (held + bytes > settings.SVC_AUDIO_LIMIT - FILE_HEAD_BYTES) {
        const message = 'Commit or clear the sound, or wait for its transcripts: the session holds as much as "SVC_AUDIO_LIMIT" permits';
        return { code: 'request.too_large', message };
      }
      if (!budget.reserve(bytes))
        return { code: 'server.overloaded', message: 'Send the sound again later: the memory for bodies is full ("SVC_BUFFER_LIMIT")' };
      reserved += bytes;
      return undefined;
    },
    /** Returns what is reserved beyond the bytes that are kept. */
    keep(bytes: number): void {
      const more = Math.max(0, reserved - bytes);
      budget.release(more);
      reserved -= more;
    },
  };
}
