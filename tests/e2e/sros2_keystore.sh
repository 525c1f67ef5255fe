#!/usr/bin/env bash
# sros2_keystore.sh KEYSTORE DOMAIN KIND ENCLAVE...: what `ros2 security create_keystore` and `create_enclave` of SROS 2 make, by the program openssl
# alone: the same directories, names, links, certificates, texts and signatures. A keystore that is there is gone on with, as SROS 2 does.
#
# KIND is the age of the texts: old (every packet signed, times without a zone: Foxy to Jazzy) or new (every packet encrypted, times with +00:00).
set -euo pipefail
keystore=$1 domain=$2 kind=$3
shift 3
protection=SIGN zone=
[[ $kind == old ]] || protection=ENCRYPT zone=+00:00

key() { # file
    openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1"
}
sign() { # text file
    openssl smime -sign -text -md sha256 -in "$1" -signer "$keystore/public/permissions_ca.cert.pem" -inkey "$keystore/private/permissions_ca.key.pem" -out "$2"
}

mkdir -p "$keystore"/{public,private,enclaves}
if [[ ! -e $keystore/enclaves/governance.p7s ]]; then
    key "$keystore/private/ca.key.pem"
    openssl req -x509 -new -sha256 -days 3650 -subj /CN=sros2CA -key "$keystore/private/ca.key.pem" -config /dev/stdin -extensions ca \
        -out "$keystore/public/ca.cert.pem" <<'END'
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE, pathlen:1
subjectKeyIdentifier = none
authorityKeyIdentifier = none
END
    for name in identity_ca permissions_ca; do
        ln -s ca.cert.pem "$keystore/public/$name.cert.pem"
        ln -s ca.key.pem "$keystore/private/$name.key.pem"
    done
    cat >"$keystore/enclaves/governance.xml" <<END
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_governance.xsd">
    <domain_access_rules>
        <domain_rule>
            <domains>
              <id>$domain</id>
            </domains>
            <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
            <enable_join_access_control>true</enable_join_access_control>
            <discovery_protection_kind>ENCRYPT</discovery_protection_kind>
            <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>
            <rtps_protection_kind>$protection</rtps_protection_kind>
            <topic_access_rules>
                <topic_rule>
                    <topic_expression>*</topic_expression>
                    <enable_discovery_protection>true</enable_discovery_protection>
                    <enable_liveliness_protection>true</enable_liveliness_protection>
                    <enable_read_access_control>true</enable_read_access_control>
                    <enable_write_access_control>true</enable_write_access_control>
                    <metadata_protection_kind>ENCRYPT</metadata_protection_kind>
                    <data_protection_kind>ENCRYPT</data_protection_kind>
                </topic_rule>
            </topic_access_rules>
        </domain_rule>
    </domain_access_rules>
</dds>
END
    sign "$keystore/enclaves/governance.xml" "$keystore/enclaves/governance.p7s"
fi

for enclave in "$@"; do
    directory=$keystore/enclaves$enclave
    mkdir -p "$directory"
    for file in public/identity_ca.cert.pem public/permissions_ca.cert.pem enclaves/governance.p7s; do
        link=$directory/$(basename "$file")
        # Those of public/ are links themselves, and are not followed. The enclave / has the governance already.
        [[ $link -ef $keystore/$file ]] || ln -s "$(realpath --no-symlinks --relative-to="$directory" "$keystore/$file")" "$link"
    done
    key "$directory/key.pem"
    # The name as it is: /CN=/rover would be read as two.
    openssl req -new -sha256 -key "$directory/key.pem" -config /dev/stdin -out "$directory/request.pem" <<END
[req]
prompt = no
string_mask = utf8only
distinguished_name = name
[name]
CN = $enclave
END
    openssl x509 -req -sha256 -days 3650 -in "$directory/request.pem" -CA "$keystore/public/identity_ca.cert.pem" -CAkey "$keystore/private/identity_ca.key.pem" \
        -set_serial "0x$(openssl rand -hex 19)" -extfile <(printf '%s\n' basicConstraints=CA:FALSE subjectKeyIdentifier=none authorityKeyIdentifier=none) -out "$directory/cert.pem" 2>/dev/null
    rm "$directory/request.pem"
    # Every topic, service and action, in the order in which SROS 2 sorts them.
    asked="<topic>rq/*/_action/cancel_goalRequest</topic><topic>rq/*/_action/get_resultRequest</topic><topic>rq/*/_action/send_goalRequest</topic><topic>rq/*Request</topic>"
    told="<topic>rr/*/_action/cancel_goalReply</topic><topic>rr/*/_action/get_resultReply</topic><topic>rr/*/_action/send_goalReply</topic><topic>rr/*Reply</topic>"
    topics="<topics>$asked$told<topic>rt/*</topic><topic>rt/*/_action/feedback</topic><topic>rt/*/_action/status</topic></topics>"
    discovery="<topics><topic>ros_discovery_info</topic></topics>"
    cat >"$directory/permissions.xml" <<END
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_permissions.xsd">
  <permissions>
    <grant name="$enclave">
      <subject_name>CN=$enclave</subject_name>
      <validity>
        <not_before>$(date -u +%Y-%m-%dT%H:%M:%S)$zone</not_before>
        <not_after>$(date -u -d '+3650 days' +%Y-%m-%dT%H:%M:%S)$zone</not_after>
      </validity>
      <allow_rule>
        <domains>
          <id>$domain</id>
        </domains>
        <publish>
          $topics
        </publish>
        <subscribe>
          $topics
        </subscribe>
      </allow_rule>
      <allow_rule>
        <domains>
          <id>$domain</id>
        </domains>
        <publish>
          $discovery
        </publish>
        <subscribe>
          $discovery
        </subscribe>
      </allow_rule>
      <default>DENY</default>
    </grant>
  </permissions>
</dds>
END
    sign "$directory/permissions.xml" "$directory/permissions.p7s"
done
