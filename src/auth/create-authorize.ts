/** The check of every request of a service with authentication. The rules are in `decide/`. */
import type { Socket } from 'node:net';
import type { Access } from '../schema/access.ts';
import { ALLOWED, AMBIGUOUS, BUSY, decideScope, INVALID, LOCAL, NOT_READY, REQUIRED, type AccessDecision } from './decide/decide-access.ts';
import { readCredential } from './decide/read-credential.ts';
import type { TokenVerdict, TokenVerifier } from './token-verifier.ts';

export interface AuthorizeDeps {
  readonly verifier: TokenVerifier;
  readonly isProxy: (address: string | undefined) => boolean;
  readonly matchesSecret: (value: string | undefined) => boolean;
  /** Whether a connection came through the socket of the service, which only root and its own user can open. Default: none. */
  readonly isLocal?: (socket: Socket) => boolean;
  /** False while the tokens were not read yet. Default: always true. */
  readonly isReady?: () => boolean;
  /** Called with the id of each token that was accepted. */
  readonly onUse: (id: string) => void;
}

/** What a check may look at. */
export interface CheckedRequest {
  readonly url?: string | undefined;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  readonly socket: Socket;
}

export type Authorize = (access: Access, request: CheckedRequest) => AccessDecision | Promise<AccessDecision>;

export function createAuthorize({
  verifier,
  isProxy,
  matchesSecret,
  isLocal = () => false,
  isReady = () => true,
  onUse,
}: AuthorizeDeps): Authorize {
  function judge(access: Access, verdict: TokenVerdict): AccessDecision {
    if (verdict === 'busy') return BUSY;
    if (verdict === undefined) return INVALID;
    onUse(verdict.id);
    return decideScope(access, verdict);
  }

  return (access, { rawHeaders, socket }) => {
    if (access === 'open') return ALLOWED;
    const credential = readCredential(rawHeaders, { isProxy: () => isProxy(socket.remoteAddress), matchesSecret });
    switch (credential.kind) {
      case 'none':
        return isLocal(socket) ? decideScope(access, LOCAL) : REQUIRED;
      case 'ambiguous':
        return AMBIGUOUS;
      case 'email':
        return decideScope(access, { identity: credential.email, scope: 'admin' });
      default: {
        if (!isReady()) return NOT_READY;
        const verdict = verifier.verify(credential.token, socket);
        return verdict instanceof Promise ? verdict.then((late) => judge(access, late)) : judge(access, verdict);
      }
    }
  };
}
