/** The answers of the open routes of `/api` as schemas. */
import { z } from 'zod';
import { SCOPES } from '../../schema/words/access.ts';

export const ErrorAnswer = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable().describe('The field, header or path parameter at fault'),
    code: z.string().nullable().describe('The errors page of the reference lists the codes of the gateway; a model server may send others'),
    origin: z.enum(['gateway', 'upstream']),
  }),
});

export const MessagesErrorAnswer = ErrorAnswer.extend({ type: z.literal('error'), request_id: z.string() });

export const RerankErrorAnswer = ErrorAnswer.extend({ id: z.string().describe('The request id'), message: z.string() });

export const OllamaErrorAnswer = z.object({ error: z.string() });

const HealthFacts = z.object({
  version: z.string(),
  uptime_seconds: z.int().min(0),
  last_pass_age_seconds: z.int().describe('Time since the reconcile loop finished a pass'),
});

export const Healthy = HealthFacts.extend({ status: z.literal('ok') });
export const Failing = HealthFacts.extend({ status: z.literal('failing'), ...ErrorAnswer.shape });
export const Ready = z.object({ status: z.literal('ok') });
export const Starting = z.object({ status: z.literal('starting'), ...ErrorAnswer.shape });
export const Features = z.object({ features: z.record(z.string(), z.boolean()) });

export const PublicUrls = z.object({
  base_url: z.url(),
  openai_base_url: z.url(),
  api_url: z.url(),
  dashboard_url: z.url(),
  chat_url: z.url(),
  source: z.enum(['host', 'setting']).describe('Derived from the header "Host", or from "SVC_PUBLIC_URL"'),
});

export const InstallState = z.object({
  complete: z.boolean(),
  steps: z.array(z.object({ id: z.string(), done: z.boolean(), hint: z.string() })),
});

export const AuthStatus = z.object({
  auth_enabled: z.boolean(),
  mode: z.enum(['off', 'basic']),
  methods: z.array(z.enum(['bearer', 'forwarded-email'])),
  scope: z.enum(SCOPES).nullable().describe('What the sender of this request may do; null without a valid credential'),
});

export const Login = z.object({ auth_enabled: z.boolean(), message: z.string() });
