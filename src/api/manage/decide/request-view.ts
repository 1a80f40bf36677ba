/** A remembered request as the API shows it. Pure. */
import type { z } from 'zod';
import type { RequestEntries } from '../../../schema/request-answers.ts';
import type { Immutable } from '../../server/answer.ts';
import type { RecordedRequest } from '../request-record.ts';

export function viewRequest(request: RecordedRequest): Immutable<z.output<typeof RequestEntries>>['requests'][number] {
  const { at, slot, route, status, because, seconds, ttftSeconds, parkedSeconds } = request;
  return {
    at: new Date(at).toISOString(),
    slot: slot ?? null,
    route,
    status,
    because,
    seconds,
    first_seconds: ttftSeconds ?? null,
    parked_seconds: parkedSeconds ?? null,
  };
}
