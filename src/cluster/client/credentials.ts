/** The address of an API server and what authenticates us to it. Types only: `find-credentials.ts` finds them. */
import type { Agent } from 'node:http';
import type { RequestOptions } from 'node:https';

export type TlsOptions = Readonly<Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'servername' | 'rejectUnauthorized'>>;

export interface Access {
  readonly headers: Readonly<Record<string, string>>;
  /** The same object as long as its contents are the same: connections depend on it. */
  readonly tls: TlsOptions;
  /** Present if requests go through a proxy. */
  readonly agent?: Agent;
}

export interface Credentials {
  /** `https://10.0.0.1:443`, without user and password. */
  readonly server: string;
  /** The namespace of the kubeconfig context or of the pod. */
  readonly namespace: string | undefined;
  /** Returns what the next request carries. Reads rotated tokens again from time to time. Throws if there are no credentials. */
  access(): Promise<Access>;
  /** Discards cached credentials after the server rejected them. Returns false if that happened a moment ago. */
  renew(): boolean;
}
